# SPDX-License-Identifier: MIT
# The results as a chart: lateness over jobs waiting, both logarithmic; left half of the jobs, right 99 of 100.
{ name = $1; $1 = ""; r[name] = substr($0, 2) }

function num(v) { sub(/^>/, "", v); return v + 0 }
function log10(v) { return log(v) / log(10) }
function x_of(w) { return left + (log10(w) - x_min) / (x_max - x_min) * width }
function y_of(v) {
    v = v < 10 ^ y_min ? 10 ^ y_min : v
    return bottom - (log10(v) - y_min) / (y_max - y_min) * height
}
function group(n, s) {
    n = sprintf("%.0f", n); s = ""
    for (; length(n) > 3; n = substr(n, 1, length(n) - 3)) s = "," substr(n, length(n) - 2) s
    return n s
}
function text(x, y, how, what) { printf "<text x='%.1f' y='%.1f' %s>%s</text>\n", x, y, how, what }
function line(x1, y1, x2, y2, how) {
    printf "<line x1='%.1f' y1='%.1f' x2='%.1f' y2='%.1f' %s/>\n", x1, y1, x2, y2, how
}
function mark(x, y, i, open, fill) { # a shape of each its own, for those who do not see colours
    fill = sprintf("fill='%s' stroke='%s' stroke-width='2'", open ? "#fff" : colour[i], colour[i])
    if (shape[i] == "square") printf "<rect x='%.1f' y='%.1f' width='9' height='9' %s/>\n", x - 4.5, y - 4.5, fill
    else if (shape[i] == "bar") printf "<rect x='%.1f' y='%.1f' width='12' height='5' %s/>\n", x - 6, y - 2.5, fill
    else if (shape[i] == "circle") printf "<circle cx='%.1f' cy='%.1f' r='4.8' %s/>\n", x, y, fill
    else if (shape[i] == "up")
        printf "<path d='M%.1f %.1fl5.5 9.5h-11z' %s/>\n", x, y - 6, fill
    else if (shape[i] == "down")
        printf "<path d='M%.1f %.1fl5.5 -9.5h-11z' %s/>\n", x, y + 6, fill
    else printf "<path d='M%.1f %.1fl5.5 5.5l-5.5 5.5l-5.5 -5.5z' %s/>\n", x, y - 5.5, fill
}
function axes(title, what, e) {
    text(left, top - 14, "class='title'", title)
    for (e = y_min; e <= y_max; e++) {
        line(left, y_of(10 ^ e), left + width, y_of(10 ^ e), "class='grid'")
        text(left - 8, y_of(10 ^ e) + 4, "text-anchor='end'", unit[e])
    }
    for (e = 1; e <= n_w; e++) {
        line(x_of(w[e]), bottom, x_of(w[e]), bottom + 5, "class='axis'")
        text(x_of(w[e]), bottom + 20, "text-anchor='middle'", group(w[e]))
    }
    line(left, bottom, left + width, bottom, "class='axis'")
    text(left + width / 2, bottom + 42, "text-anchor='middle'", "jobs waiting (log)")
}
function pen(i) {
    return sprintf("stroke='%s' stroke-width='%s'%s", colour[i], i == 1 ? 3.5 : 2, dash[i])
}
function curve(i, part, k, v, path, n, x, y, dots) {
    for (k = 1; k <= n_w; k++) {
        v = r[who[i] "." w[k] "." part "_ms"]
        if (v == "") continue
        x[++n] = x_of(w[k]) + beside[i]; y[n] = y_of(num(v)); dots[n] = substr(v, 1, 1) == ">"
        path = path (n > 1 ? "L" : "M") sprintf("%.1f %.1f", x[n], y[n])
    }
    if (n) printf "<path d='%s' fill='none' %s/>\n", path, pen(i)
    for (k = 1; k <= n; k++) {
        if (dots[k])
            printf "<path d='M%.1f %.1fv-16m-4 5l4 -5l4 5' fill='none' stroke='%s' stroke-width='1.5'/>\n",
                x[k], y[k] - 4, colour[i]
        mark(x[k], y[k], i, dots[k])
    }
    open_dots += dots[1] + dots[2] + dots[3] + dots[4]
    return n
}
function panel(at, title, part, i) {
    left = at
    axes(title)
    for (i = n_who; i >= 1; i--) drawn[i] += curve(i, part)
}

END {
    split("lapse.waiting bullmq.waiting zset10.waiting bullmq.ahead", who, " ")
    n_who = 4 + split("beanstalk.waiting zset1000.waiting expired.waiting", more, " ")
    for (i = 5; i <= n_who; i++) who[i] = more[i - 4]
    split("lapse|BullMQ|ZSET polled every 10 ms|BullMQ, Redis else idle|beanstalkd (whole seconds)|" \
        "ZSET polled every 1 s|expired events", label, "|")
    split("#c2255c #1971c2 #2f9e44 #1971c2 #e8590c #7048e8 #495057", colour, " ")
    split("circle up diamond up down bar square", shape, " ")
    dash[4] = " stroke-dasharray='6 4'"
    # these two lie on each other
    beside[5] = -5; beside[6] = 5
    split("1 us|10 us|0.1 ms|1 ms|10 ms|0.1 s|1 s|10 s|100 s", names, "|")
    for (i = 1; i <= 9; i++) unit[i - 4] = names[i]
    n_w = split(r["plan.waiting"], w, " ")
    if (("lapse.waiting.5000000.p50_ms") in r) w[++n_w] = 5000000
    x_min = log10(w[1]) - 0.15; x_max = log10(w[n_w]) + 0.15
    y_min = -2; y_max = 5
    top = 94; height = 340; bottom = top + height; width = 330

    print "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1060 500' width='1060' height='500'>"
    print "<style>text{font:13px Helvetica,Arial,sans-serif;fill:#343a40}"
    print ".head{font-size:18px;font-weight:bold}.title{font-size:14px;font-weight:bold}"
    print ".grid{stroke:#dee2e6}.axis{stroke:#343a40}.small{font-size:12px}</style>"
    print "<rect width='1060' height='500' fill='#fff'/>"
    quick = r["machine.quick"] == 1 ? " (QUICK run, not for quoting)" : ""
    text(82, 30, "class='head'", "How late a job starts" quick)
    text(82, 49, "class='small'", "1,000 jobs/s, one listener, Redis " r["machine.redis"] ", hz 10; " r["machine.date"])
    up = sprintf("transform='translate(16 %.1f) rotate(-90)'", top + height / 2)
    text(0, 0, "text-anchor='middle' " up, "late by (log)")
    panel(82, "half of the jobs (p50)", "p50")
    panel(482, "99 of 100 jobs (p99)", "p99")
    y = top + 30
    for (i = 1; i <= n_who; i++) {
        if (!drawn[i]) continue
        line(836, y, 862, y, pen(i))
        mark(849, y, i)
        text(870, y + 4, i == 1 ? "style='font-weight:bold'" : "", label[i])
        y += 26
    }
    if (open_dots) {
        text(836, y + 14, "class='small'", "hollow, with an arrow: later than")
        text(836, y + 30, "class='small'", "that; many had not come when")
        text(836, y + 46, "class='small'", "the run was given up")
    }
    print "</svg>"
}
