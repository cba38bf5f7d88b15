# What a command of a campaign does: JOURNAL KIND MARKER. The journal says when it began, whether another one of its run still
# went on (only then is its lock taken: the kernel gives it back with the last process that has it), and how it ended.
# The shell's own words about what was ended are no part of the log.
exec 2>/dev/null
journal=$1
kind=$2
note() { echo "$1 $RUN_ID $ATTEMPT $(date +%s%3N) $2" >>"$journal"; }
exec 9>"$journal.$RUN_ID"
if flock -n 9; then others=alone; else others=beside; fi
note began "$others $3"
printed=0
print() {
  seq -f "$RUN_ID $(printf %4d "$ATTEMPT") %08.0f" $((printed + 1)) $((printed + $1))
  printed=$((printed + $1))
}
end() {
  note ended "$1 $printed"
  exit "$1"
}
trap 'end 143' TERM
print 20
case $kind$RUN_ID in
slow*) for _ in 1 2 3 4; do sleep 2; print 20; done ;;
loud*[0-3]) print 30000 ;;
codes*[0-3]) end 3 ;;
codes*[4-9]) [ "$ATTEMPT" -gt 2 ] || end 75 ;;
esac
end 0
