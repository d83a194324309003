# SPDX-License-Identifier: MIT
# Draws network.svg from the data that chart.py writes: left the half of the jobs (p50), right 99 of 100 (p99).
# chart.py gives data, chart, drawn (the numbers of the series that were run), marks (those of the x axis, which are
# as far apart as another, and most the last of them), main_title and subtitle.

set terminal svg size 1080,500 font "Helvetica,13" background "#ffffff"
set output chart
set encoding utf8

array label[4] = ["lapse", "BullMQ", "ZSET polled every 10 ms", "half a round trip"]
# a shape each, for those who do not see colours; and the same shape hollow, for what is only known to be later
array filled[4] = [7, 5, 13, 0]
array hollow[4] = [6, 4, 12, 0]
set style line 1 lc rgb "#c2255c" lw 3.5
set style line 2 lc rgb "#1971c2" lw 2
set style line 3 lc rgb "#2f9e44" lw 2
set style line 4 lc rgb "#868e96" lw 1.5 dt 3

set logscale y
set xlabel "round trip to Redis"
eval "set xtics (" . marks . ") nomirror scale 0.5"
set ytics ("10 us" 0.01, "0.1 ms" 0.1, "1 ms" 1, "10 ms" 10, "0.1 s" 100, "1 s" 1000, "10 s" 10000)
set ytics nomirror scale 0
set yrange [0.05:20000]
set xrange [-0.3:most + 0.3]
set grid ytics lc rgb "#dee2e6" lt 1
set border 1 lc rgb "#343a40"
set tics textcolor rgb "#343a40"

set label 1 main_title at screen 0.085, 0.955 font "Helvetica,18"
set label 2 subtitle at screen 0.085, 0.905 font "Helvetica,12"
set label 3 "hollow: later than that; many had not\ncome when the run was given up" \
    at screen 0.77, 0.30 font "Helvetica,12"

set multiplot
set tmargin at screen 0.82
set bmargin at screen 0.14

set lmargin at screen 0.085
set rmargin at screen 0.39
unset key
set title "half of the jobs (p50)" offset 0, -0.3
set ylabel "late by (log)" offset 1, 0
plot \
    for [i in drawn] data index (i - 1) using 1:2 with lines ls i, \
    for [i in drawn] data index (i - 1) using 1:($3 == 0 ? $2 : NaN) with points ls i pt filled[int(i)] ps 0.8, \
    for [i in drawn] data index (i - 1) using 1:($3 == 1 ? $2 : NaN) with points ls i dt 1 pt hollow[int(i)] ps 0.8

set lmargin at screen 0.44
set rmargin at screen 0.755
set title "99 of 100 jobs (p99)"
unset ylabel
unset label 1
unset label 2
unset label 3
set key at screen 0.77, 0.82 left top Left reverse samplen 2 spacing 1.5
plot \
    for [i in drawn] data index (i - 1) using 1:4 with lines ls i notitle, \
    for [i in drawn] data index (i - 1) using 1:($5 == 0 ? $4 : NaN) with points ls i pt filled[int(i)] ps 0.8 notitle, \
    for [i in drawn] data index (i - 1) using 1:($5 == 1 ? $4 : NaN) with points ls i dt 1 pt hollow[int(i)] ps 0.8 notitle, \
    for [i in drawn] keyentry with linespoints ls i pt filled[int(i)] ps 0.8 title label[int(i)]

unset multiplot
