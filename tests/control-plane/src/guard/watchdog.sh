# Reads orders until its pipe closes, which is when the process that wrote them is gone; then nothing of it may stay.
trap '' HUP INT TERM
groups=
while read -r verb what; do
  case $verb in
  guard) groups="$groups $what" ;;
  release)
    kept=
    for group in $groups; do [ "$group" = "$what" ] || kept="$kept $group"; done
    groups=$kept
    ;;
  # Only what is still guarded: the number of a process that ended may belong to another one.
  kill | terminate)
    signal=KILL
    [ "$verb" = kill ] || signal=TERM
    case " $groups " in *" $what "*) kill -s "$signal" -- "-$what" ;; esac
    ;;
  folder) set -- "$@" "$what" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done
for folder in "$@"; do
  # A dying process may still write: rm then finds a folder that is not empty.
  tries=0
  until rm -rf -- "$folder" || [ "$tries" -ge 100 ]; do tries=$((tries + 1)); done
done
