"""A queue of work in Redis whose items are leased to workers that may vanish at any moment.

    waiting   list          items that are to be done, the next one first
    leases    sorted set    items that a worker has, by the time at which its lease ends
    owners    hash          item → worker, of those
    done      hash          item → worker, for good

An item is in exactly one of waiting, leases and done; each step below moves it by one script, which
Redis runs as a whole. A worker that is killed keeps its items until their leases end, then they
wait again. finish() is refused to a worker whose lease has ended, so each item is done by one
worker, and `done` says by which: a worker that goes on from a checkpoint asks done_by() what it has
to catch up on.
"""

import contextlib
import threading

_NOW = "local t = redis.call('TIME') local now = t[1] + t[2] / 1e6 "
_KEYS = "local waiting, leases, owners, done = KEYS[1], KEYS[2], KEYS[3], KEYS[4] "
_OWNED = "if redis.call('HGET', owners, ARGV[1]) ~= ARGV[2] then return 0 end "
_RELEASE = "redis.call('ZREM', leases, ARGV[1]) redis.call('HDEL', owners, ARGV[1]) "

_FILL = """
for _, item in ipairs(ARGV) do
  if redis.call('HEXISTS', owners, item) == 0 and redis.call('HEXISTS', done, item) == 0 and
      not redis.call('LPOS', waiting, item) then
    redis.call('RPUSH', waiting, item)
  end
end
return redis.call('LLEN', waiting)
"""
_TAKE = """
for _, item in ipairs(redis.call('ZRANGEBYSCORE', leases, '-inf', now)) do
  redis.call('ZREM', leases, item)
  redis.call('HDEL', owners, item)
  redis.call('RPUSH', waiting, item)
end
local item = redis.call('LPOP', waiting)
if not item then return {redis.call('ZCARD', leases)} end
redis.call('ZADD', leases, now + ARGV[2], item)
redis.call('HSET', owners, item, ARGV[1])
return {0, item}
"""
_RENEW = "redis.call('ZADD', leases, now + ARGV[3], ARGV[1]) return 1"
_FINISH = "redis.call('HSET', done, ARGV[1], ARGV[2]) return 1"
_GIVE_BACK = "redis.call('LPUSH', waiting, ARGV[1]) return 1"


class WorkQueue:
    """client: redis.Redis. name: before the names of its keys. lease: seconds."""

    def __init__(self, client, name, lease=30.0):
        self._client = client
        self._keys = [f"{name}:{key}" for key in ("waiting", "leases", "owners", "done")]
        self._lease = lease

        def script(*parts):
            return client.register_script(_KEYS + "".join(parts))

        self._fill = script(_FILL)
        self._take = script(_NOW, _TAKE)
        self._renew = script(_OWNED, _NOW, _RENEW)
        self._finish = script(_OWNED, _RELEASE, _FINISH)
        self._give_back = script(_OWNED, _RELEASE, _GIVE_BACK)

    def fill(self, items):
        """Adds those that it does not know yet. How many wait now."""
        return self._fill(self._keys, list(items))

    def take(self, worker):
        """(item, others): the next item, or None with the number of items that others have now.
        (None, 0): everything is done."""
        others, *item = self._take(self._keys, [worker, self._lease])
        return (item[0].decode() if item else None), others

    def finish(self, item, worker):
        """False if the lease has ended and the item may be another worker's by now."""
        return self._finish(self._keys, [item, worker]) == 1

    def give_back(self, item, worker):
        return self._give_back(self._keys, [item, worker]) == 1

    def done_by(self, worker):
        """The items that this worker has finished."""
        done = self._client.hgetall(self._keys[3])
        return sorted(item.decode() for item, by in done.items() if by.decode() == worker)

    @contextlib.contextmanager
    def kept(self, item, worker):
        """Renews the lease while the block runs."""
        ended = threading.Event()

        def renew():
            while not ended.wait(self._lease / 3):
                with contextlib.suppress(Exception):  # finish() says if it was for too long
                    self._renew(self._keys, [item, worker, self._lease])

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
