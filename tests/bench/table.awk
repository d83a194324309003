# SPDX-License-Identifier: MIT
# The results as a Markdown table. A goal is of the full sizes; whether it is reached is said for the sizes of this run.
{ name = $1; $1 = ""; r[name] = substr($0, 2) }

function has(name) { return name in r && r[name] != "" }
function num(name, v) { v = has(name) ? r[name] : ""; sub(/^>/, "", v); return v + 0 }
function bound(name) { return has(name) && substr(r[name], 1, 1) == ">" ? ">" : "" }
function group(n, s) {
    n = sprintf("%.0f", n); s = ""
    for (; length(n) > 3; n = substr(n, 1, length(n) - 3)) s = "," substr(n, length(n) - 2) s
    return n s
}
function digits(v) { return v >= 1000 ? group(v) : sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : "%.2f", v) }
function us_as_ms(name) { return has(name) ? digits(num(name) / 1000) : "" }
function script_ms(name) { return has(name) && num(name) == 0 ? "< 0.1" : us_as_ms(name) }
function show(name) { return has(name) ? bound(name) digits(num(name)) : "-" }
function count(name) { return has(name) ? group(num(name)) : "-" }
function late(l, claimed) {
    if (!has(l "." claimed "p50_ms")) return "-"
    return show(l "." claimed "p50_ms") " / " show(l "." claimed "p99_ms") " / " show(l "." claimed "max_ms")
}
function times(a, b) { return b > 0 ? digits(a / b) " times" : "-" }
function over(mine, theirs, what) { # by how much mine is the greater
    return has(mine) && has(theirs) ? times(num(mine), num(theirs)) (what ? " " what : "") : ""
}
function middle(n, v, i, j, t) {
    for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (v[j] < v[i]) { t = v[i]; v[i] = v[j]; v[j] = t }
    return n ? v[int((n + 1) / 2)] : ""
}
function rounds(who, field, n, i, v) { # the middle one of them
    for (i = 1; has(who "." i "." field); i++) v[++n] = num(who "." i "." field)
    if (n) r[who "." field] = middle(n, v)
}
function share(a, b, field, n, i, v) { # the middle of the rounds' quotients: what is compared ran side by side
    for (i = 1; has(a "." i "." field) && has(b "." i "." field); i++)
        v[++n] = num(a "." i "." field) / num(b "." i "." field)
    return middle(n, v)
}
function yes(ok) { return ok ? "yes" : "**no**" }
function peer(who, text) { return has(who ".not_run") ? "not run" : text }
function row(measure, goal, lapse, reached, better, bull, bean, z10, z1, expired) {
    printf "| %s | %s | %s | %s | %s ", measure, goal, lapse, reached, better
    printf "| %s | %s | %s | %s | %s |\n", peer("bullmq", bull), peer("beanstalk", bean), z10, z1, expired
}
function own(measure, goal, lapse, reached) { row(measure, goal, lapse, reached, "", "", "", "", "", "") }
function wrongs(who, n, parts, i, name, out, sum) { # lost, twice, early of all its runs
    n = split("lost twice early", parts, " ")
    for (name in r) for (i = 1; i <= n; i++)
        if (index(name, who ".") == 1 && name ~ ("\\." parts[i] "$")) { sum[i] += r[name]; sum[0]++ }
    for (i = 1; i <= n; i++) out = out (i > 1 ? " / " : "") group(sum[i])
    return sum[0] ? out : "-"
}

function head(quick) {
    if (r["machine.quick"] == 1)
        print "**QUICK=1: small sizes and short runs. It shows that the bench works, and is not for quoting.**\n"
    printf "%s, %s cores (%s), load %s before and %s after; ", r["machine.date"], r["machine.cores"], r["machine.cpu"],
        r["machine.load"], r["machine.load_after"]
    printf "Redis %s, hz 10, over a Unix socket", r["machine.redis"]
    if (has("machine.bullmq")) printf "; BullMQ %s on Node.js %s", r["machine.bullmq"], r["machine.node"]
    if (has("machine.beanstalkd")) printf "; beanstalkd %s", r["machine.beanstalkd"]
    printf "; %s s in all.\n", r["machine.seconds"]
    print "Where nothing else is said, times are p50 / p99 / max in ms, of the handler's start after the due moment,"
    print "and there are one listener and one producer, each a process. Bodies of 100 bytes, ids of 20.\n"
    print "| measure | goal | lapse | reached | better by | BullMQ | beanstalkd (whole seconds) " \
        "| ZSET polled, 10 ms | ZSET polled, 1 s | `expired` events |"
    print "|---|---|---|---|---|---|---|---|---|---|"
}

function punctual(l, claimed) {
    return num(l "." claimed "p50_ms") <= 0.25 && num(l "." claimed "p99_ms") <= 1 && \
        num(l "." claimed "max_ms") <= 20 && num(l ".early") == 0
}
function better_than(k, what) {
    what = index(k, ".ahead") == 1 ? "that " : ""
    if (has("bullmq" k ".p50_ms"))
        own(what "p50 better than BullMQ's", ">= 100 times", over("bullmq" k ".p50_ms", "lapse" k ".p50_ms"),
            yes(num("bullmq" k ".p50_ms") >= 100 * num("lapse" k ".p50_ms")))
    if (has("zset10" k ".p99_ms"))
        own(what "p99 better than the 10 ms poller's", ">= 10 times", over("zset10" k ".p99_ms", "lapse" k ".p99_ms"),
            yes(num("zset10" k ".p99_ms") >= 10 * num("lapse" k ".p99_ms")))
}
function lateness(k, n, w, i, l, last, better, p50, least, top) {
    n = split(r["plan.waiting"], w, " ")
    least = 1e9
    for (i = 1; i <= n; i++) {
        k = ".waiting." w[i]; l = "lapse" k; last = i == n
        if (!has(l ".p50_ms")) continue
        p50 = num(l ".p50_ms"); least = p50 < least ? p50 : least; top = p50 > top ? p50 : top
        better = over("bullmq" k ".p50_ms", l ".p50_ms", "BullMQ's p50")
        if (has("zset10" k ".p99_ms"))
            better = better (better ? ", " : "") over("zset10" k ".p99_ms", l ".p99_ms", "the 10 ms poller's p99")
        row("1,000/s, " group(w[i]) " waiting", last ? "<= 0.25 / 1 / 20" : "", late(l), last ? yes(punctual(l)) : "",
            better, late("bullmq" k), late("beanstalk" k), late("zset10" k), late("zset1000" k), late("expired" k))
        if (!last) continue
        own("the same, claimed (Redis's clock)", "<= 0.25 / 1 / 20", late(l, "claimed_"), yes(punctual(l, "claimed_")))
        if (has("lapse.tool.claimed"))
            own("the same, claimed, as `lapse bench` has it", "", r["lapse.tool.claimed"], "")
        better_than(k)
        k = ".ahead." w[i]; l = "lapse" k
        if (!has(l ".p50_ms")) continue
        row("1,000/s, " group(w[i]) " waiting, all scheduled before the first is due", "<= 0.25 / 1 / 20", late(l),
            yes(punctual(l)), "", late("bullmq" k), "", "", "", "")
        better_than(k)
    }
    l = "lapse.waiting.5000000"
    if (has(l ".p50_ms")) {
        p50 = num(l ".p50_ms"); least = p50 < least ? p50 : least; top = p50 > top ? p50 : top
        own("1,000/s, 5,000,000 waiting", "", late(l), "")
    }
    if (top > 0) own("p50: highest over lowest of these", "<= 1.5 times", times(top, least), yes(top <= 1.5 * least))
}
function fast(per_s, goal, l) {
    l = "lapse.fast." per_s
    if (has(l ".p99_ms"))
        own(group(per_s) "/s, " group(r["plan.most"]) " waiting, " group(r[l ".n"]) " jobs", "p99 <= " goal,
            late(l) "; put at " group(num(l ".reached_s")) "/s", yes(num(l ".p99_ms") <= goal))
}
function burst(b, v) {
    if (!has("lapse.burst.drain_s")) return
    b = group(r["plan.burst"]) " due in one ms: "; v = num("lapse.burst.drain_s")
    row(b "jobs/s until all are settled", ">= 40,000", group(v), yes(v >= 40000),
        over("lapse.burst.drain_s", "bullmq.burst.drain_s", "BullMQ's"), count("bullmq.burst.drain_s"),
        count("beanstalk.burst.drain_s"), count("zset10.burst.drain_s"), "", "")
    row(b "longest script, ms", "<= 5", script_ms("lapse.burst.script_us"), yes(num("lapse.burst.script_us") <= 5000),
        "", script_ms("bullmq.burst.script_us"), "", script_ms("zset10.burst.script_us"), "", "")
    row(b "another client's longest PING, ms", "<= 50", us_as_ms("lapse.burst.ping.max_us"),
        yes(num("lapse.burst.ping.max_us") <= 50000), "", us_as_ms("bullmq.burst.ping.max_us"), "",
        us_as_ms("zset10.burst.ping.max_us"), "", "")
}
function crowd(n, now, l, one, what, cpu) {
    l = "lapse.listeners" now "." n; one = "lapse.listeners" now ".1"
    if (!has(l ".p99_ms")) return
    what = n " listener" (n > 1 ? "s" : "") (now ? ", delay 0" : "") ": "; cpu = num(l ".server_us_job")
    own(what "lateness", n == 4 ? "p99 <= 3" : "", late(l), n == 4 ? yes(num(l ".p99_ms") <= 3) : "")
    own(what "claims, touch scripts a job", n > 1 ? "<= 1.1, <= 1.2" : "", show(l ".claim") ", " show(l ".touch"),
        n > 1 ? yes(num(l ".claim") > 0 && num(l ".claim") <= 1.1 && num(l ".touch") <= 1.2) : "")
    own(what "server CPU a job, us", n == 4 ? "<= 1.5 times one's" : "",
        digits(cpu) (n > 1 ? ", " times(cpu, num(one ".server_us_job")) " one's" : ""),
        n == 4 ? yes(cpu <= 1.5 * num(one ".server_us_job")) : "")
}
function stopped(nth, l) {
    l = "lapse.stopped." nth
    if (has(l ".p99_ms"))
        own("4 listeners, that of rank " nth - 1 " stopped meanwhile; lost, twice", "p99 <= 80; 0, 0",
            late(l) "; " num(l ".lost") ", " num(l ".twice"),
            yes(num(l ".p99_ms") <= 80 && num(l ".lost") == 0 && num(l ".twice") == 0))
}
function schedule(v) {
    if (!has("lapse.schedule.jobs_s")) return
    row("schedule " group(r["plan.bulk"]) " jobs, many in flight, jobs/s", "", count("lapse.schedule.jobs_s"), "",
        over("lapse.schedule.jobs_s", "bullmq.schedule.jobs_s", "BullMQ's"), count("bullmq.schedule.jobs_s"),
        count("beanstalk.schedule.jobs_s"), count("zset10.schedule.jobs_s"), "", count("expired.schedule.jobs_s"))
    v = share("lapse.schedule", "native.schedule", "jobs_s")
    own("the same over ZADD+HSET+SET pipelined (" count("native.schedule.jobs_s") "/s)", ">= 0.8", digits(v) " times",
        yes(v >= 0.8))
    v = num("lapse.schedule.jobs_s")
    if (has("bullmq.schedule.jobs_s"))
        own("the same over BullMQ's addBulk", ">= 5 times", times(v, num("bullmq.schedule.jobs_s")),
            yes(v >= 5 * num("bullmq.schedule.jobs_s")))
}
function one(v) {
    if (!has("lapse.one.p50_us")) return
    row("schedule one at a time, p50 us", "", show("lapse.one.p50_us"), "",
        over("bullmq.one.p50_us", "lapse.one.p50_us", "BullMQ's"), show("bullmq.one.p50_us"),
        show("beanstalk.one.p50_us"), show("zset10.one.p50_us"), "", show("expired.one.p50_us"))
    v = share("lapse.one", "native.ping", "p50_us")
    own("the same over a PING's round trip (" show("native.ping.p50_us") " us)", "<= 2 times", digits(v) " times",
        yes(v <= 2))
    v = share("lapse.one_tcp", "native.ping_tcp", "p50_us")
    own("the same by TCP (PING " show("native.ping_tcp.p50_us") " us)", "<= 2 times",
        show("lapse.one_tcp.p50_us") "; " digits(v) " times", yes(v <= 2))
}
function bytes(v) {
    if (!has("lapse.bytes")) return
    v = num("lapse.bytes")
    row("bytes a waiting job, " group(r["plan.most"]) " waiting", "<= 450", group(v), yes(v <= 450),
        over("bullmq.bytes", "lapse.bytes", "BullMQ's"), count("bullmq.bytes"), count("beanstalk.bytes"),
        count("zset10.bytes"), count("zset1000.bytes"), count("expired.bytes"))
    v = num("lapse.bytes_ahead")
    if (v > 0) own("the same with arm_ahead_ms", "<= 335", group(v), yes(v <= 335))
}
function idle_of(who, l) {
    l = who ".idle."
    if (!has(l "cpu")) return "-"
    return (who == "beanstalk" ? "0" : show(l "sent_s") " (" show(l "commands_s") ")") \
        sprintf(", %.2f, %.2f", r[l "cpu"], r[l "server_cpu"])
}
function idle() {
    if (has("lapse.idle.cpu"))
        row("idle, " group(r["plan.idle_at"]) " waiting: commands/s (with those in scripts), listener, server CPU %",
            "<= 2, <= 0.2", idle_of("lapse"), yes(num("lapse.idle.sent_s") <= 2 && num("lapse.idle.cpu") <= 0.2), "",
            idle_of("bullmq"), idle_of("beanstalk"), idle_of("zset10"), idle_of("zset1000"), idle_of("expired"))
}
function listener(l, k) {
    l = "lapse.fast.10000"; k = ".waiting." r["plan.most"]
    if (!has(l ".rss_kib")) return
    own("listener, " group(r[l ".n"]) " jobs at 10,000/s: RSS after a tenth, at the end, KiB", "flat",
        count(l ".rss_early_kib") ", " count(l ".rss_kib"), yes(num(l ".rss_kib") <= 1024 + num(l ".rss_early_kib")))
    own("the same: allocations a job by src/mem; beside them hiredis's and libev's", "<= 2",
        show(l ".mem_allocs_job") "; " show(l ".other_allocs_job"), yes(num(l ".mem_allocs_job") <= 2))
    own("the same: CPU a job, us", "<= 12", show(l ".cpu_us_job"), yes(num(l ".cpu_us_job") <= 12))
    row("listener CPU a job at 1,000/s, us", "", show("lapse" k ".cpu_us_job"), "",
        over("bullmq" k ".cpu_us_job", "lapse" k ".cpu_us_job", "BullMQ's"), show("bullmq" k ".cpu_us_job"),
        show("beanstalk" k ".cpu_us_job"), show("zset10" k ".cpu_us_job"), show("zset1000" k ".cpu_us_job"),
        show("expired" k ".cpu_us_job"))
    row("server CPU a job at 1,000/s, us, from schedule to settle", "", show("lapse" k ".server_us_job"), "",
        over("bullmq" k ".server_us_job", "lapse" k ".server_us_job", "BullMQ's"), show("bullmq" k ".server_us_job"),
        show("beanstalk" k ".server_us_job"), show("zset10" k ".server_us_job"), show("zset1000" k ".server_us_job"),
        show("expired" k ".server_us_job"))
}

END {
    n = split("lapse native bullmq beanstalk zset10 expired", s, " ")
    for (i = 1; i <= n; i++) { rounds(s[i] ".schedule", "jobs_s"); rounds(s[i] ".one", "p50_us") }
    rounds("lapse.one_tcp", "p50_us"); rounds("native.ping", "p50_us"); rounds("native.ping_tcp", "p50_us")
    head()
    lateness()
    fast(5000, 3)
    fast(10000, 10)
    burst()
    crowd(1); crowd(4); crowd(16)
    crowd(1, "_now"); crowd(4, "_now"); crowd(16, "_now")
    stopped(1)
    stopped(3)
    schedule()
    one()
    bytes()
    idle()
    listener()
    ours = wrongs("lapse")
    if (ours != "-")
        row("jobs lost / twice / early, all runs", "0 / 0 / 0", ours, yes(ours == "0 / 0 / 0"), "",
            wrongs("bullmq"), wrongs("beanstalk"), wrongs("zset10"), wrongs("zset1000"), wrongs("expired"))
    printf "\nLost: had not come when the run was given up (`expired` events: %s s after the last was due);",
        r["plan.hopeless_s"]
    print " a time with > is longer than that."
    for (who in r) if (sub(/\.not_run$/, "", who)) print "\nNot run: " who ": " r[who ".not_run"] "."
}
