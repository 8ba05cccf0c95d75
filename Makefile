# rdma-tune: `make demo` shows it at work, `make check` runs every test, `make help` lists the rest.
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:

BUILD  ?= build
PREFIX ?= /usr/local
CXX    ?= g++
ifeq ($(origin CXX),default)
CXX    := g++
endif
CC     ?= cc
LAUNCH ?= $(shell command -v ccache 2>/dev/null)
SAN    ?=
OPT    ?= -O2 -g

# ---- flags -------------------------------------------------------------------------------------
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wnull-dereference -Werror
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CXXFLAGS_ALL := -std=c++20 $(OPT) $(WARN) $(SANFLAGS) -fPIC -I. -MMD -MP $(CXXFLAGS)
LDFLAGS_ALL  := $(SANFLAGS) $(LDFLAGS)
# Rooms that run inside NCCL: nothing of the C++ runtime, and the same bits from every compiler.
FREESTANDING := -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off -fvisibility=hidden

PKG_PROGRAM := hwloc libibverbs fmt
PKG_CFLAGS   = $(shell pkg-config --cflags $(PKG_PROGRAM) inih 2>/dev/null)
PKG_LIBS     = $(shell pkg-config --libs $(PKG_PROGRAM) 2>/dev/null) -linih

# ---- rooms -------------------------------------------------------------------------------------
ROOMS        := base config topology binding task gpudirect profile fabric model report
NCCL_ROOMS   := profile model nccl
objects       = $(patsubst %.cpp,$(BUILD)/obj/%.o,$(sort $(wildcard $(1)/*.cpp)))
ROOM_LIBS    := $(foreach r,$(ROOMS),$(BUILD)/lib/librt-$(r).a)

PROGRAM := $(BUILD)/bin/rdma-tune
SPANK   := $(BUILD)/lib/spank_rdma_tune.so
TUNER   := $(BUILD)/lib/libnccl-tuner-rdmatune.so

.PHONY: all
all: $(PROGRAM) $(SPANK) $(TUNER)

$(BUILD)/obj/%.o: %.cpp
	@mkdir -p $(@D)
	$(LAUNCH) $(CXX) $(CXXFLAGS_ALL) $(PKG_CFLAGS) $(EXTRA) -c $< -o $@

$(BUILD)/obj/tuner/profile/%.o $(BUILD)/obj/tuner/model/%.o $(BUILD)/obj/tuner/nccl/%.o: EXTRA = $(FREESTANDING)
$(BUILD)/obj/spank/%.o: EXTRA = -fvisibility=hidden

define room_rule
$(BUILD)/lib/librt-$(1).a: $$(call objects,tuner/$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rule,$(r))))

$(PROGRAM): $(call objects,tuner/cli) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(CXX) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -ldl -pthread

# Slurm's symbols come from the process that loads the plugin.
$(SPANK): $(call objects,spank) $(BUILD)/lib/librt-config.a $(BUILD)/lib/librt-base.a spank/exports.map
	@mkdir -p $(@D)
	$(CXX) $(LDFLAGS_ALL) -shared -static-libstdc++ -static-libgcc -Wl,--version-script=spank/exports.map \
	  -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,-Bstatic -linih -Wl,-Bdynamic

# Linked by the C compiler on purpose: no C++ runtime library comes in unnoticed.
$(TUNER): $(foreach r,$(NCCL_ROOMS),$(call objects,tuner/$(r))) tuner/nccl/exports.map
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS_ALL) -shared -Wl,--version-script=tuner/nccl/exports.map -Wl,-z,defs -o $@ $(filter %.o,$^) -lm

# ---- unit tests: one program per folder of tests/unit ------------------------------------------
UNIT := $(notdir $(wildcard tests/unit/*))
define unit_rule
$(BUILD)/tests/$(1)_test: $$(call objects,tests/unit/$(1)) $$(UNIT_EXTRA_$(1)) $(ROOM_LIBS)
	@mkdir -p $$(@D)
	$(CXX) $(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -lgmock -lgtest -lgtest_main -ldl -pthread
.PHONY: check-$(1)
check-$(1): $(BUILD)/tests/$(1)_test
	$(BUILD)/tests/$(1)_test
endef
$(foreach u,$(UNIT),$(eval $(call unit_rule,$(u))))

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
