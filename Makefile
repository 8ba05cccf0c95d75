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
SAN    ?=
OPT    ?= -O2 -g1
LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
# Samples of the configuration; a site copies what it wants to /etc.
SAMPLEDIR ?= $(PREFIX)/share/rdma-tune
# Any folder will do for the SPANK plugin: plugstack.conf names it by its absolute path.
SPANKDIR  ?= $(LIBDIR)/slurm
# Asked once, on first use.
LAUNCH = $(eval LAUNCH := $$(shell command -v ccache 2>/dev/null))$(LAUNCH)

# One short line a file; V=1 shows the commands.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-5s %s\n' '$(1)' '$(patsubst $(CURDIR)/%,%,$(2))')

# ---- flags -------------------------------------------------------------------------------------
WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
CXXFLAGS_ALL := -std=c++20 $(OPT) $(WARN) $(SANFLAGS) -fPIC -I. -MMD -MP $(CXXFLAGS)
LDFLAGS_ALL  := $(SANFLAGS) $(LDFLAGS)
# Rooms that run inside NCCL: nothing of the C++ runtime, and the same bits from every compiler.
FREESTANDING := -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off -fvisibility=hidden

PKG_PROGRAM := hwloc libibverbs fmt tinyxml2
PKG_CFLAGS   = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PKG_PROGRAM) inih 2>/dev/null))$(PKG_CFLAGS)
PKG_LIBS     = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PKG_PROGRAM) 2>/dev/null) -linih)$(PKG_LIBS)

# ---- rooms -------------------------------------------------------------------------------------
ROOMS        := base config topology binding task gpudirect profile fabric model report
NCCL_ROOMS   := profile model nccl
objects       = $(patsubst %.cpp,$(BUILD)/obj/%.o,$(sort $(wildcard $(1)/*.cpp)))
ROOM_LIBS    := $(foreach r,$(ROOMS),$(BUILD)/lib/librt-$(r).a)

PROGRAM := $(BUILD)/bin/rdma-tune
TASK_PROGRAM := $(BUILD)/bin/rdma-tune-task
SPANK   := $(BUILD)/lib/spank_rdma_tune.so
TUNER   := $(BUILD)/lib/libnccl-tuner-rdmatune.so

.PHONY: all
all: $(PROGRAM) $(TASK_PROGRAM) $(SPANK) $(TUNER)

# One plain sentence instead of a page of compiler errors where a library is absent.
LIBRARIES := $(BUILD)/.libraries-found
$(LIBRARIES):
	@command -v $(firstword $(CXX)) pkg-config >/dev/null && pkg-config --exists $(PKG_PROGRAM) inih && \
	  printf '#include <CLI/CLI.hpp>\n#include <nlohmann/json.hpp>\n#include <slurm/spank.h>\n' | \
	  $(CXX) -E -x c++ - >/dev/null 2>&1 || { \
	  echo "rdma-tune: a compiler or library is missing: run \`make deps\` (what is needed: scripts/packages.txt)" >&2; exit 1; }
	@mkdir -p $(@D) && touch $@

$(BUILD)/obj/%.o: %.cpp | $(LIBRARIES)
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(LAUNCH) $(CXX) $(CXXFLAGS_ALL) $(PKG_CFLAGS) $(EXTRA) -c $< -o $@

$(BUILD)/obj/tuner/profile/%.o $(BUILD)/obj/tuner/model/%.o $(BUILD)/obj/tuner/nccl/%.o: EXTRA = $(FREESTANDING)
# The one file that runs at every collective.
$(BUILD)/obj/tuner/model/reprice.o: EXTRA = $(FREESTANDING) -O3
$(BUILD)/obj/spank/%.o: EXTRA = -fvisibility=hidden
# Command lines and unit tests are not fast code, and CLI11's and GoogleTest's templates are what building waits for.
$(BUILD)/obj/tuner/cli/%.o $(BUILD)/obj/tests/unit/%.o: EXTRA = $(if $(SAN),,-O1)

define room_rule
$(BUILD)/lib/librt-$(1).a: $$(call objects,tuner/$(1))
	@mkdir -p $$(@D)
	@rm -f $$@
	$$(call say,AR,$$@)
	$$(Q)ar rcs $$@ $$^
endef
$(foreach r,$(ROOMS),$(eval $(call room_rule,$(r))))

$(PROGRAM): $(call objects,tuner/cli) $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -ldl -pthread

# `rdma-tune task` alone, for containers: static, so that it runs with any C library or none.
TASK_ROOMS := base config topology binding task gpudirect profile
$(TASK_PROGRAM): $(patsubst %,$(BUILD)/obj/tuner/cli/%.o,alone/task_main cmd_task this_node print_out) $(TASK_ROOMS:%=$(BUILD)/lib/librt-%.a)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) $(if $(SAN),,-static) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(if $(SAN),$(PKG_LIBS))

# Slurm's symbols come from the process that loads the plugin.
$(SPANK): $(call objects,spank) $(BUILD)/lib/librt-config.a $(BUILD)/lib/librt-base.a spank/exports.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -shared -static-libstdc++ -static-libgcc -Wl,--version-script=spank/exports.map \
	  -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -Wl,-Bstatic -linih -Wl,-Bdynamic

# Linked by the C compiler on purpose: no C++ runtime library comes in unnoticed.
$(TUNER): $(foreach r,$(NCCL_ROOMS),$(call objects,tuner/$(r))) tuner/nccl/exports.map
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -shared -Wl,--version-script=tuner/nccl/exports.map -Wl,-z,defs -o $@ $(filter %.o,$^) -lm

# ---- unit tests: one program per folder of tests/unit ------------------------------------------
UNIT := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard tests/unit/*/*_test.cpp)))))
# What a room's tests need besides the rooms: the plugin's file, the simulator, the Slurm plugin's parts without Slurm.
UNIT_EXTRA_nccl := $(TUNER)
UNIT_EXTRA_model := $(patsubst %,$(BUILD)/obj/tests/model/%.o,ring tree)
UNIT_EXTRA_spank := $(patsubst %,$(BUILD)/obj/spank/%.o,text settings interrupt)
# Fewer rooms where few are used: the sanitizers' builds start from nothing at the gate.
UNIT_ROOMS_base   := base
UNIT_ROOMS_child  := base
UNIT_ROOMS_nccl   := profile model
UNIT_ROOMS_spank  := base config profile model
UNIT_ROOMS_fabric := base config profile model topology binding fabric
unit_libs          = $(foreach r,$(or $(UNIT_ROOMS_$(1)),$(ROOMS)),$(BUILD)/lib/librt-$(r).a)
define unit_rule
$(BUILD)/tests/$(1)_test: $$(call objects,tests/unit/$(1)) $$(UNIT_EXTRA_$(1)) $(call unit_libs,$(1))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)
	$$(Q)$(CXX) $(LDFLAGS_ALL) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $(call unit_libs,$(1)) -Wl,--end-group $(PKG_LIBS) -lgtest_main -lgmock -lgtest -ldl -pthread
.PHONY: check-$(1)
check-$(1): $(BUILD)/tests/$(1)_test
	$(BUILD)/tests/$(1)_test
endef
$(foreach u,$(UNIT),$(eval $(call unit_rule,$(u))))

UNIT_PROGRAMS := $(UNIT:%=$(BUILD)/tests/%_test)
# The NCCL plugin is tested as NCCL uses it: opened by its path.
$(BUILD)/obj/tests/unit/nccl/%.o: EXTRA = -DTUNER_PATH='"$(abspath $(TUNER))"'

# ---- tests/model: the simulator's program ---------------------------------------------------------
$(BUILD)/model/sweep: $(call objects,tests/model) $(BUILD)/lib/librt-model.a
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -o $@ $^ -pthread

# ---- fuzzers and benchmarks: one program per tests/fuzz/*_fuzz.cpp and tests/bench/*_bench.cpp ---
FUZZERS := $(patsubst tests/fuzz/%.cpp,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.cpp))
BENCHES := $(patsubst tests/bench/%.cpp,$(BUILD)/bench/%,$(wildcard tests/bench/*_bench.cpp))
$(FUZZERS): $(BUILD)/fuzz/%: $(BUILD)/obj/tests/fuzz/%.o $(BUILD)/obj/tests/fuzz/driver.o $(BUILD)/obj/spank/text.o $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -ldl -pthread
$(BENCHES): $(BUILD)/bench/%: $(BUILD)/obj/tests/bench/%.o $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -lbenchmark -ldl -pthread

$(BUILD)/bench/tuner_bench: $(call objects,tuner/nccl)

# ---- tests/rdma: both ends of one verbs link, for the guest -------------------------------------
VERBS_PROBE := $(BUILD)/tests/verbs_probe
$(VERBS_PROBE): $(BUILD)/obj/tests/rdma/verbs_probe.o $(ROOM_LIBS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS_ALL) -o $@ $(filter %.o,$^) -Wl,--start-group $(ROOM_LIBS) -Wl,--end-group $(PKG_LIBS) -ldl -pthread

# Everything that is compiled, so that one `make -j` fills the machine before any test runs.
.PHONY: test-programs guest-programs fuzz-programs bench-programs
test-programs: $(UNIT_PROGRAMS) $(BUILD)/model/sweep
guest-programs: $(VERBS_PROBE)
fuzz-programs: $(FUZZERS)
bench-programs: $(BENCHES)

# ---- packages ----------------------------------------------------------------------------------
# Whoever needs packages looks first whether any is missing, then starts make again: the second
# make sees the libraries that the first one installed.
JOBS  ?= $(shell nproc 2>/dev/null || echo 2)
AGAIN  = +$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(JOBS))
DEPS   = @scripts/deps.sh
CHECK_GROUPS := build cluster train test

.PHONY: deps
deps:
	$(DEPS) build cluster train test lint rdma

# ---- demo --------------------------------------------------------------------------------------
.PHONY: demo
demo:
	$(DEPS) build cluster train
	$(AGAIN) all
	BUILD=$(abspath $(BUILD)) scripts/demo.sh

# ---- tests -------------------------------------------------------------------------------------
# `check` is what a change must pass on any Debian 12; `check-all` adds what takes longer: the
# sanitizers, the guest with real RDMA verbs, lint. SUITES= chooses others: make check SUITES="unit slurm".
SAN_BUILD  = $(BUILD)-asan
TSAN_BUILD = $(BUILD)-tsan
RUN = BUILD=$(abspath $(BUILD)) SAN_BUILD=$(abspath $(SAN_BUILD)) TSAN_BUILD=$(abspath $(TSAN_BUILD)) tests/run
SUITES ?= unit slurm nccl model container exec training scripts
# The sanitizers' unit tests; TSan's are those with threads of ours or of NCCL's.
SAN_UNIT  ?= $(UNIT)
TSAN_UNIT ?= $(filter nccl fabric model,$(UNIT))
SAN_OPT   ?= -O1 -g1
SAN_SUITES ?= san fuzz

.PHONY: check check-all check-san check-tsan check-rdma
check:
	$(DEPS) $(CHECK_GROUPS)
	$(AGAIN) all test-programs
	$(RUN) $(SUITES)

check-all:
	$(DEPS) $(CHECK_GROUPS) lint rdma
	$(AGAIN) all test-programs guest-programs
	$(AGAIN) san-programs tsan-programs
	$(RUN) $(SUITES) san tsan fuzz lint rdma

check-san:
	$(DEPS) build test
	$(AGAIN) san-programs
	$(RUN) $(SAN_SUITES)

check-tsan:
	$(DEPS) build test
	$(AGAIN) tsan-programs
	$(RUN) tsan

check-rdma:
	$(DEPS) build cluster test rdma
	$(AGAIN) all guest-programs
	$(RUN) rdma

.PHONY: san-programs tsan-programs
san-programs:
	+$(MAKE) --no-print-directory BUILD=$(SAN_BUILD) SAN=address,undefined OPT="$(SAN_OPT)" $(SAN_UNIT:%=$(SAN_BUILD)/tests/%_test) $(if $(filter fuzz,$(SAN_SUITES)),fuzz-programs)
tsan-programs:
	+$(MAKE) --no-print-directory BUILD=$(TSAN_BUILD) SAN=thread OPT="$(SAN_OPT)" $(TSAN_UNIT:%=$(TSAN_BUILD)/tests/%_test)

.PHONY: bench
bench:
	$(DEPS) $(CHECK_GROUPS)
	$(AGAIN) all bench-programs $(BUILD)/model/sweep
	BUILD=$(abspath $(BUILD)) tests/bench/run

# ---- lint --------------------------------------------------------------------------------------
.PHONY: lint
lint:
	$(DEPS) build test lint
	BUILD=$(abspath $(BUILD)) scripts/lint.sh

# ---- installation ------------------------------------------------------------------------------
INSTALLED_FILES = \
  755:$(PROGRAM):$(PREFIX)/bin/rdma-tune \
  755:$(TASK_PROGRAM):$(PREFIX)/bin/rdma-tune-task \
  755:$(TASK_PROGRAM):$(PREFIX)/bin/rdma-tune-task \
  644:$(TUNER):$(LIBDIR)/libnccl-tuner-rdmatune.so \
  644:$(SPANK):$(SPANKDIR)/spank_rdma_tune.so \
  $(foreach s,1 5 8,$(foreach m,$(wildcard docs/man/*.$(s)),644:$(m):$(MANDIR)/man$(s)/$(notdir $(m)))) \
  $(foreach c,$(shell cd conf && find . -type f -printf '%P\n' | sort),644:conf/$(c):$(SAMPLEDIR)/conf/$(c)) \
  $(foreach e,$(wildcard scripts/examples/* scripts/train/*.py),$(if $(wildcard $(e)/.),,644:$(e):$(SAMPLEDIR)/$(e:scripts/%=%)))
part = $(word $(2),$(subst :, ,$(1)))

.PHONY: install uninstall
install: all
	$(foreach f,$(INSTALLED_FILES),install -D -m $(call part,$(f),1) $(call part,$(f),2) "$(DESTDIR)$(call part,$(f),3)"$(newline))
	find "$(DESTDIR)$(SAMPLEDIR)" -type f -exec sed -i -e 's|@SPANKDIR@|$(SPANKDIR)|g' \
	  -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' {} +

# Exactly the files that install put there, and the folders that are empty then and only ours.
uninstall:
	rm -f $(foreach f,$(INSTALLED_FILES),"$(DESTDIR)$(call part,$(f),3)")
	if [ -d "$(DESTDIR)$(SAMPLEDIR)" ]; then find "$(DESTDIR)$(SAMPLEDIR)" -depth -type d -empty -delete; fi

.PHONY: clean help
clean:
	rm -rf $(BUILD) $(SAN_BUILD) $(TSAN_BUILD)

define newline


endef

help:
	@printf '%s\n' \
	  'make            build the program and both plugins below $(BUILD)/' \
	  'make deps       install the Debian packages that building, demo, tests and lint need' \
	  'make demo       a training job under srun --rdma-tune on a Slurm cluster started for it here' \
	  'make check      the tests;   SUITES="unit slurm" chooses among them' \
	  'make check-X    one folder of tests/unit, or san, tsan, rdma; check-all runs everything' \
	  'make bench      measurements: what the figures in the documentation come from' \
	  'make lint       clang-format, clang-tidy, shellcheck, man pages' \
	  'make install    PREFIX=$(PREFIX) DESTDIR= LIBDIR=$(LIBDIR) SPANKDIR=$(SPANKDIR)' \
	  'make uninstall  removes what install put there, with the same variables' \
	  'make clean      removes $(BUILD)/ and the sanitizers'"'"' builds' \
	  'variables: V=1, BUILD, CXX, OPT, SAN=address,undefined, CXXFLAGS, LDFLAGS'

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
