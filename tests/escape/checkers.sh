#!/bin/sh
# Runs public checkers inside a sandbox and says of each check:  clean · known (with the reason why it is no hole) · info · absent · FOUND.
# See checkers.md. `fetch-checkers` puts the checkers beside this file; nothing here needs a network.
here=$(dirname "$0")/checkers
debian=$here/debian
export LD_LIBRARY_PATH="$debian/usr/lib/x86_64-linux-gnu:$debian/lib/x86_64-linux-gnu"
PATH=$debian/sbin:$debian/usr/bin:$here/bin:$PATH
never='sys_admin|sys_module|sys_rawio|sys_ptrace|sys_boot|sys_time|net_admin|net_raw|mknod|dac_read_search|syslog|bpf|perfmon|checkpoint_restore'

say() { printf '%-6s %s: %s\n' "$1" "$2" "$3"; }
# A power over the kernel: a hole on the host's kernel, of no use on one that is the sandbox's own.
power() {
  if [ "$(uname -r)" = "${ESCAPE_HOST_RELEASE:-$(uname -r)}" ]; then say FOUND "$1" "$2"; else say known "$1" "$2 (over the sandbox's own kernel $(uname -r))"; fi
}
have() { command -v "$1" >/dev/null 2>&1 || { say absent "$1" "not fetched"; return 1; }; }
# Only the capabilities nobody needs here, of a list in any style.
dangerous() { grep -oE "$never" | sort -u | tr '\n' ' '; }

if have capsh; then
  held=$(capsh --print | grep -E '^(Current|Bounding set|Ambient set)' | grep -v IAB | dangerous)
  if [ -n "$held" ]; then power capsh "can be had: $held"; else say clean capsh "no dangerous capability held or in bounds"; fi
  if capsh --print | grep -q 'no-new-privs=1'; then say clean capsh "no_new_privs is set"; else power capsh "no_new_privs is not set"; fi
fi
if have captest; then
  if ! captest 2>/dev/null | grep -q 'direct access to shadow...SUCCESS'; then say clean captest "the shadow file is out of reach"
  elif [ "$(id -u)" = 0 ]; then say known captest "root inside reads the sandbox's own shadow file"
  else say FOUND captest "a user reads the shadow file"; fi
fi
if have pscap; then
  held=$(pscap -a 2>/dev/null | dangerous)
  if [ -n "$held" ]; then power pscap "processes hold $held"; else say clean pscap "no process holds a dangerous capability"; fi
fi
if have filecap; then
  files=$(filecap /usr 2>/dev/null | awk 'NR>1{print $2}' | tr '\n' ' ')
  if [ -n "$files" ]; then say known filecap "${files}(set on files, but gains nothing: attempts 111 and 113)"; else say clean filecap "no file has capabilities"; fi
fi
if have am-i-isolated; then
  am-i-isolated 2>/dev/null | grep -E ' test (passed|failed): ' | sed 's/^[^a-zA-Z/]*//' | while read -r line; do
    case $line in
      *" test passed: "*) say clean am-i-isolated "${line%%:*}" ;;
      "container virtualization test failed"*) say known am-i-isolated "no hardware virtualization: that is what these classes are" ;;
      "running as root test failed"*) say known am-i-isolated "root inside was asked for, and is nobody outside (attempt 320)" ;;
      "exploitable capabilities test failed"*)
        rest=$(printf %s "$line" | tr 'A-Z' 'a-z' | dangerous)
        if [ -n "$rest" ]; then power am-i-isolated "$rest"; else say known am-i-isolated "CAP_SYS_CHROOT, which leads only to the sandbox's own root (attempt 310)"; fi ;;
      "OCI runtime test failed"*) say known am-i-isolated "no OCI runtime: Belljar's own launcher" ;;
      "RWX memory mappings test failed"*) say known am-i-isolated "writable and executable memory is there for compilers at run time (node, Java)" ;;
      "Yama LSM test failed"*) say known am-i-isolated "Yama is the host kernel's business; ptrace of others is refused without it (attempts 401, 402)" ;;
      "seccomp profile test failed"*) power am-i-isolated "no system-call filter" ;;
      "/proc and /sys masking test failed"*) power am-i-isolated "/proc and /sys are not masked" ;;
      "host namespaces test failed"*) power am-i-isolated "the kernel's first namespaces: ${line##*: }" ;;
      *) say FOUND am-i-isolated "$line" ;;
    esac
  done
fi
if have amicontained; then
  # It tries every system call and then stops itself with one of them.
  said=$(timeout -s KILL 10 amicontained 2>/dev/null)
  case $said in
    *"Seccomp: filtering"*) say clean amicontained "system calls are filtered: $(printf %s "$said" | grep -oE 'Blocked Syscalls \([0-9]+\)')" ;;
    *) power amicontained "no system-call filter" ;;
  esac
  case $said in *"user: true"*) say clean amicontained "user namespace" ;; *) power amicontained "no user namespace" ;; esac
  held=$(printf %s "$said" | grep -A4 '^Capabilities' | dangerous)
  if [ -n "$held" ]; then power amicontained "$held"; else say clean amicontained "no dangerous capability"; fi
fi
if have deepce.sh; then
  said=$(timeout -s KILL 60 sh "$here/bin/deepce.sh" --no-colors --no-network 2>/dev/null)
  for door in 'Docker Sock' 'Docker Executable' 'Container tools'; do
    case $(printf %s "$said" | grep -F "$door") in
      *"Not Found"* | *None*) say clean deepce "$door: none" ;;
      *) say FOUND deepce "$(printf %s "$said" | grep -F "$door")" ;;
    esac
  done
  privileged=$(printf %s "$said" | grep -F 'Privileged Mode')
  case $privileged in *Yes*) say FOUND deepce "$privileged" ;; *) say clean deepce "not privileged" ;; esac
fi
if [ "$(id -u)" = 0 ] && [ -e "$debian/usr/sbin/lynis" ]; then
  # It wants its files where a package puts them; the sandbox is thrown away afterwards.
  cp -a "$debian/usr/share/lynis" /usr/share/ && cp -a "$debian/etc/lynis" /etc/
  index=$(timeout -s KILL 90 sh "$debian/usr/sbin/lynis" audit system --quick --no-colors 2>/dev/null | grep -E 'Hardening index|Tests performed' | tr -s ' \n' ' ')
  say info lynis "${index:-said nothing} (it audits the Debian inside, not the wall around it)"
fi
