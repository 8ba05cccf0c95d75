#!/bin/bash
# chroot.sh CHROOT WORK BUILD: makes WORK/opt fit for the Slurm in CHROOT. The plugin is compiled there,
# because Slurm loads no plugin of another release; the programs stay this machine's, with their
# libraries beside them, because CHROOT has none of them (its C library must not be older).
set -euo pipefail
chroot=$1 work=$2 build=$3
top=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
source_copy=$chroot/tmp/rdma-tune-source
rm -rf "$source_copy"
mkdir -p "$source_copy"
cp -r "$top"/spank "$top"/tuner "$source_copy"
# By hand, because make looks for what the programs need, too.
chroot "$chroot" bash -c 'cd /tmp/rdma-tune-source && g++ -std=c++20 -O0 -Wall -Wextra -Werror -fPIC -shared \
  -fvisibility=hidden -I. -static-libstdc++ -static-libgcc -Wl,--version-script=spank/exports.map -o plugin.so \
  spank/*.cpp tuner/base/*.cpp tuner/config/{options,file,paths}.cpp -linih'
install -m 644 "$source_copy/plugin.so" "$work/opt/lib/slurm/spank_rdma_tune.so"
rm -rf "$source_copy"

mkdir -p "$work/opt/lib/rdma-tune-libraries"
ldd "$build/bin/rdma-tune" | awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread)\.so/ { print $3 }' |
  xargs -r cp -L -t "$work/opt/lib/rdma-tune-libraries"
# The program finds them through a shell script of its name, which starts the real one.
mv "$work/opt/bin/rdma-tune" "$work/opt/bin/rdma-tune.real"
cat >"$work/opt/bin/rdma-tune" <<'SCRIPT'
#!/bin/bash
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH=$here/../lib/rdma-tune-libraries
exec "$here/rdma-tune.real" "$@"
SCRIPT
chmod 755 "$work/opt/bin/rdma-tune"
