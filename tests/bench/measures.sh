# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2154
# What is measured, by run.sh; each function is one word of ONLY. Figures are named SYSTEM.MEASURE.FIGURE.

if [ "$quick" ]; then
    WAITING=(1000 30000) IDLE_AT=1000 IDLE_S=2 CALM_MS=500 FOR_S=1 LONG_S=2 LEAD=300 JITTER=200 HOPELESS_S=2
    BURST=10000 BULK=20000 ONE=1000 OTHERS=10000 STOPPED_S=2
else
    WAITING=(10000 100000 1000000) IDLE_AT=100000 IDLE_S=20 CALM_MS=3000 FOR_S=10 LONG_S=100 LEAD=1000 JITTER=1000
    HOPELESS_S=20 BURST=100000 BULK=100000 ONE=5000 OTHERS=100000 STOPPED_S=8
fi
MOST=${WAITING[-1]}
start_ms() { [ "$1" = bullmq ] && echo 1200 || echo 300; } # SYSTEM: what its programs need
put plan.most "$MOST"
put plan.waiting "${WAITING[*]}"
put plan.idle_at "$IDLE_AT"
put plan.for_s "$FOR_S"
put plan.long_s "$LONG_S"
put plan.burst "$BURST"
put plan.bulk "$BULK"
put plan.others "$OTHERS"
put plan.hopeless_s "$HOPELESS_S"

# Jobs at a rate, for some seconds; $lead, $jitter and $stop (the nth listener is stopped for a while) are the caller's.
# The producer goes on until the last that is measured was due, for it makes a difference whether anybody talks to the
# server; with $ahead it has ended before the first is due, and nobody does.
timed() { # SYSTEM NAME RATE SECONDS GRACE_S [LISTENERS]
    local system=$1 name=$2 rate=$3 measured=$(($3 * $4)) grace_s=$5 listeners=${6:-1} command listen_args=() i
    local heard=() ears=() n=$measured lead=$lead
    if [ "$ahead" ]; then lead=$(($4 * 1000 + 200)); else n=$((n + rate * (lead + jitter) / 1000)); fi
    runs=$((runs + 1))
    say "$system: $rate/s for $4 s, $(printf %s "$name" | tr . ' '), listeners: $listeners"
    local before t0=$(($(now) + $(start_ms "$system") + lead + jitter))
    local until=$((t0 + n * 1000 / rate + grace_s * 1000))
    command_of "$system"
    for ((i = 1; i <= listeners; i++)); do
        # one that is not alone cannot know that all have come
        spawn "${command[@]}" listen "at=$at" "run=$runs" "t0=$t0" "n=$n" "until=$until" "out=$dir/heard.$i" \
            "o.name=$(printf l%02d "$i")" "${listen_args[@]+"${listen_args[@]}"}" > "$dir/listen.$i"
        ears+=($!) heard+=("$dir/heard.$i")
    done
    before=$(cpu_us "$server")
    spawn "${command[@]}" produce "at=$at" "run=$runs" "t0=$t0" "n=$n" "rate=$rate" "lead=$lead" "jitter=$jitter" \
        > "$dir/produce"
    local producer=$!
    if [ "$stop" ]; then
        until_ms $((t0 + $4 * 250))
        kill -STOP "${ears[stop - 1]}"
        until_ms $((t0 + $4 * 650))
        kill -CONT "${ears[stop - 1]}"
    fi
    for i in "$producer" "${ears[@]}"; do
        wait "$i" || say "$system: a program ended with $?"
        gone "$i"
    done
    put "$name.server_us_job" $((($(cpu_us "$server") - before) / n))
    keep "$name" "$dir/produce"
    keep "$name" "$dir/listen.1"
    "$out/spread" "t0=$t0" "rate=$rate" "n=$n" "measured=$measured" "end=$until" "${heard[@]}" > "$dir/got"
    keep "$name" "$dir/got"
    rm -f "$dir"/heard.* "$dir"/listen.*
    say "    p50 $(got "$name.p50_ms") p99 $(got "$name.p99_ms") max $(got "$name.max_ms") ms;" \
        "lost $(got "$name.lost") twice $(got "$name.twice") early $(got "$name.early")"
}

idle() { # SYSTEM
    local command listen_args=() ear before after cpu server_cpu monitor
    say "$1: idle for $IDLE_S s"
    command_of "$1"
    spawn "${command[@]}" listen "at=$at" run=0 n=0 out=/dev/null \
        "until=$(($(now) + $(start_ms "$1") + CALM_MS + IDLE_S * 1000 + 1000))" \
        "${listen_args[@]+"${listen_args[@]}"}" > /dev/null
    ear=$!
    until_ms $(($(now) + CALM_MS + $(start_ms "$1")))
    if [ "$1" != beanstalk ]; then
        spawn redis-cli -s "$at" MONITOR > "$dir/monitor"
        monitor=$!
        until_ms $(($(now) + 50))
        before=$(info stats total_commands_processed)
    fi
    cpu=$(cpu_us $ear) server_cpu=$(cpu_us "$server")
    until_ms $(($(now) + IDLE_S * 1000))
    put "$1.idle.cpu" "$(awk "BEGIN { print ($(cpu_us $ear) - $cpu) / $IDLE_S / 1e4 }")"
    put "$1.idle.server_cpu" "$(awk "BEGIN { print ($(cpu_us "$server") - $server_cpu) / $IDLE_S / 1e4 }")"
    if [ "$1" != beanstalk ]; then
        after=$(info stats total_commands_processed) # a look counts itself when it has been answered
        end $monitor
        put "$1.idle.commands_s" "$(awk "BEGIN { print ($after - $before - 1) / $IDLE_S }")"
        # what a script calls is said to come from "lua"; both looks are in it
        put "$1.idle.sent_s" "$(awk -v s="$IDLE_S" \
            '/^[0-9.]+ \[/ && !/^[0-9.]+ \[[0-9]+ lua\]/ { n++ } END { print (n - 2) / s }' "$dir/monitor")"
    fi
    # not killed: lapse's registry would keep a dead listener, and its share would be late by the grace
    wait $ear
    gone $ear
}

lateness() { # HOW_IT_IS_STORED GRACE_S SYSTEM...: several that share a store
    local store=$1 grace_s=$2 have=0 w base system lead=$LEAD jitter=$JITTER stop='' ahead=''
    # it counts in seconds: with less its figure would depend on what is left of one
    [ "$store" != beanstalk ] || jitter=1000
    shift 2
    start "$store" || return
    base=$(memory "$store")
    for w in "${WAITING[@]}"; do
        say "$store: to $w waiting"
        run "$store" fill "from=$have" "n=$((w - have))" || return
        have=$w
        quiet "$store"
        [ "$w" != "$MOST" ] || put "$store.bytes" $((($(memory "$store") - base) / w))
        for system in "$@"; do
            [ "$w" != "$IDLE_AT" ] || idle "$system"
            timed "$system" "$system.waiting.$w" 1000 "$FOR_S" "$grace_s"
            case $system in
            lapse | bullmq) ahead=1 timed "$system" "$system.ahead.$w" 1000 "$FOR_S" "$grace_s" ;;
            esac
        done
    done
    if [ "$store" = lapse ]; then
        timed lapse lapse.fast.5000 5000 "$FOR_S" 10
        timed lapse lapse.fast.10000 10000 "$LONG_S" 10
        if [ "${BIG-}" ]; then
            say 'lapse: to 5000000 waiting'
            run lapse fill "from=$have" "n=$((5000000 - have))" || return
            quiet lapse
            timed lapse lapse.waiting.5000000 1000 "$FOR_S" 3
        fi
    fi
    down
}

# What users can run themselves must say the same. Its jobs are all scheduled a second ahead.
tool() {
    up lapse || return
    say "lapse bench --rate 1000/s --waiting $MOST"
    spawn "$dir/lapse" bench -u "unix://$at" --rate 1000/s --duration "${FOR_S}s" --waiting "$MOST" --json \
        > "$dir/got"
    wait "$!" || say "lapse bench ended with $?"
    gone "$!"
    put lapse.tool.claimed "$(for part in p50 p99 max; do
        sed -n "s/.*\"rate_claimed_late_${part}_ms\": *\([0-9.]*\).*/\1/p" "$dir/got"
    done | awk '{ printf "%s%.2f", (NR > 1 ? " / " : ""), $1 }')"
}

measure_late() {
    lateness lapse 3 lapse
    lateness bullmq 5 bullmq
    lateness beanstalk 3 beanstalk
    lateness zset10 3 zset10 zset1000
    put zset1000.bytes "$(got zset10.bytes)"
    lateness expired "$HOPELESS_S" expired
    tool
    up lapse || return
    local base
    base=$(memory lapse)
    say "lapse: $MOST waiting with arm_ahead_ms"
    if run lapse fill "n=$MOST" o.arm_ahead_ms=60s; then
        put lapse.bytes_ahead $((($(memory lapse) - base) / MOST))
    else
        put lapse.bytes_ahead none
    fi
}

measure_burst() {
    local system t0 command listen_args ear watch
    for system in lapse bullmq beanstalk zset10; do
        start "$system" || continue
        runs=$((runs + 1))
        case $system in bullmq) t0=$((BURST / 4)) ;; *) t0=$((BURST / 20)) ;; esac
        t0=$(($(now) + t0 + $(start_ms "$system") * 2 + 2000))
        say "$system: $BURST due in the same millisecond"
        run "$system" burst "run=$runs" "t0=$t0" "n=$BURST" || continue
        if [ $((t0 - $(now))) -lt 1500 ]; then
            say "$system: this machine is too slow to put them all before they are due"
            continue
        fi
        quiet "$system"
        command_of "$system"
        [ "$system" != bullmq ] || listen_args=(concurrency=100) # drains faster than with its default of 1
        spawn "${command[@]}" listen "at=$at" "run=$runs" "t0=$t0" "n=$BURST" "until=$((t0 + 90000))" \
            "out=$dir/heard" "${listen_args[@]+"${listen_args[@]}"}" > "$dir/listen"
        ear=$! watch=
        if [ "$system" != beanstalk ]; then
            until_ms $((t0 - 300))
            redis CONFIG SET slowlog-log-slower-than 100 > /dev/null
            redis SLOWLOG RESET > /dev/null
            spawn "$out/native" watch "at=$at" "from=$((t0 - 50))" "until=$((t0 + 90000))" > "$dir/watch"
            watch=$!
        fi
        wait $ear
        gone $ear
        if [ "$watch" ]; then
            kill -TERM $watch
            wait $watch
            gone $watch
            keep "$system.burst.ping" "$dir/watch"
            put "$system.burst.script_us" "$(slowest_script)"
        fi
        keep "$system.burst" "$dir/listen"
        "$out/spread" "t0=$t0" rate=0 "n=$BURST" "end=$((t0 + 90000))" "$dir/heard" > "$dir/got"
        keep "$system.burst" "$dir/got"
        put "$system.burst.drain_s" "$(awk "BEGIN { print int($BURST * 1000 / $(got "$system.burst.settled_ms")) }")"
        say "    $(got "$system.burst.drain_s") jobs/s; lost $(got "$system.burst.lost")"
    done
}
slowest_script() {
    redis EVAL "local most = 0 for _, e in ipairs(redis.call('SLOWLOG', 'GET', -1)) do
        if string.lower(e[4][1]) == 'evalsha' then most = math.max(most, e[3]) end end return most" 0
}

# Redis keeps what it ran, with SHA: how often each script was called is exact.
counting() {
    redis CONFIG SET slowlog-max-len 1000000 > /dev/null
    redis CONFIG SET slowlog-log-slower-than 0 > /dev/null
    redis SLOWLOG RESET > /dev/null
}
counted() { # NAME
    redis CONFIG SET slowlog-log-slower-than -1 > /dev/null
    local script sha
    redis --raw SLOWLOG GET -1 > "$dir/slowlog"
    for script in claim touch sweep schedule listen 'done'; do
        sha=$(sha1sum "$dir/lua/$script.lua" | cut -d' ' -f1)
        put "$1.$script" "$(awk -v sha="$sha" -v n="$(got "$1.n")" \
            '$0 == sha { k++ } END { print k / n }' "$dir/slowlog")"
    done
    rm -f "$dir/slowlog"
    redis SLOWLOG RESET > /dev/null
}

measure_listeners() {
    local k lead jitter stop='' ahead=''
    up lapse || return
    say "lapse: to $OTHERS waiting"
    run lapse fill "n=$OTHERS" || return
    quiet lapse
    for k in 1 4 16; do
        lead=$LEAD jitter=$JITTER
        counting
        timed lapse "lapse.listeners.$k" 1000 "$FOR_S" 2 "$k"
        counted "lapse.listeners.$k"
        lead=0 jitter=0
        counting
        timed lapse "lapse.listeners_now.$k" 1000 "$FOR_S" 2 "$k"
        counted "lapse.listeners_now.$k"
    done
}

measure_stopped() {
    local lead=$LEAD jitter=$JITTER stop ahead=''
    for stop in 1 3; do
        up lapse || return
        run lapse fill "n=$OTHERS" || return
        quiet lapse
        timed lapse "lapse.stopped.$stop" 1000 "$STOPPED_S" 2 4
    done
}

measure_schedule() {
    local round system
    up lapse || return
    for round in 1 2 3 4 5; do
        for system in native lapse; do
            say "$system: $BULK jobs, many on their way, round $round"
            redis FLUSHALL > /dev/null
            quiet "$system"
            run "$system" fill "n=$BULK" && keep "$system.schedule.$round" "$dir/got"
        done
    done
    for system in bullmq beanstalk zset10 expired; do
        start "$system" || continue
        say "$system: $BULK jobs, many on their way"
        run "$system" fill "n=$BULK" && keep "$system.schedule.1" "$dir/got"
    done
}

measure_one() {
    local round system port=0 try socket way
    # a port may be taken
    for try in 1 2 3; do
        port=$((20000 + RANDOM % 10000))
        up lapse $port && break
        [ $try != 3 ] || return
    done
    socket=$at
    for round in 1 2 3; do
        for way in '' _tcp; do
            say "a PING's round trip, then lapse: one job at a time, round $round$way"
            [ ! "$way" ] || at=$port
            run native ping "n=$ONE" && keep "native.ping$way.$round" "$dir/got"
            run lapse one "n=$ONE" && keep "lapse.one$way.$round" "$dir/got"
            at=$socket
            redis FLUSHALL > /dev/null
        done
    done
    for system in bullmq beanstalk zset10 expired; do
        start "$system" || continue
        say "$system: one job at a time"
        run "$system" one "n=$ONE" && keep "$system.one.1" "$dir/got"
    done
}
