# SPDX-License-Identifier: MIT
# claim, touch: take what is not due yet
s/if score and tonumber(score) <= now_ms and not place/if score and not place/
s/call('ZRANGEBYSCORE', DUE, '-inf', now_ms,/call('ZRANGEBYSCORE', DUE, '-inf', '+inf',/
s/call('ZRANGEBYSCORE', DUE, after, now_ms,/call('ZRANGEBYSCORE', DUE, after, '+inf',/
