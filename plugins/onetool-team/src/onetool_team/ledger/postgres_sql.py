"""The statements of the ledger in PostgreSQL: each is committed by itself, and no lock waits for anything else."""

from __future__ import annotations

from functools import cache

from ot.ledger.fingerprint import SAME_CALL_SECONDS
from ot.ledger.run_book import LEASE_SECONDS

ALIVE_SECONDS = 4.0
"""A writer that has not been heard of for so long is dead, and what it had sent is unknown."""

TABLES = """
CREATE TABLE writers (writer uuid PRIMARY KEY, name text NOT NULL DEFAULT '',
    seen timestamptz NOT NULL, since timestamptz NOT NULL);
CREATE TABLE run_beats (run text PRIMARY KEY, start integer NOT NULL, seen timestamptz NOT NULL) WITH (fillfactor = 50);
CREATE TABLE runs (id text PRIMARY KEY, principal bytea NOT NULL, record bytea NOT NULL,
    state text NOT NULL DEFAULT 'waiting', start integer NOT NULL DEFAULT 0, writer uuid,
    number bigint, question bytea, answer bytea, packs bytea, ending bytea,
    cancelled boolean NOT NULL DEFAULT false, created timestamptz NOT NULL, begun timestamptz, ended timestamptz)
    WITH (fillfactor = 70);
CREATE INDEX runs_history ON runs (principal, created DESC, id);
CREATE INDEX runs_open ON runs (principal, created) WHERE ended IS NULL;
CREATE TABLE effects (run text NOT NULL, start integer NOT NULL, call integer NOT NULL, principal bytea NOT NULL,
    tool text NOT NULL, line integer, fingerprint bytea NOT NULL, writer uuid NOT NULL, ticket integer NOT NULL,
    state text NOT NULL DEFAULT 'sent', sent timestamptz NOT NULL, ended timestamptz, value bytea,
    given_key text NOT NULL DEFAULT '', directory text NOT NULL DEFAULT '', PRIMARY KEY (run, start, call))
    WITH (fillfactor = 85);
CREATE INDEX effects_open ON effects (principal, fingerprint, sent) WHERE state IN ('sent', 'unknown');
CREATE INDEX effects_person ON effects (principal);
CREATE INDEX effects_time ON effects USING brin (sent);
"""
"""Effects name runs that have no row: those of the foreground. States are no list: a later release may know more."""

ALIVE = f"seen > clock_timestamp() - interval '{ALIVE_SECONDS} s'"
LEASE = f"interval '{LEASE_SECONDS} s'"
IS_DEAD = f"(e.writer <> %(me)s AND NOT EXISTS (SELECT 1 FROM writers w WHERE w.writer = e.writer AND w.{ALIVE}))"
"""Of an entry, that nobody is at it any more. Whoever asks is alive, also after an outage."""
CARRIED = f"""EXISTS (SELECT 1 FROM writers w WHERE w.writer = r.writer AND (
    w.{ALIVE} AND EXISTS (SELECT 1 FROM run_beats b
        WHERE b.run = r.id AND b.start = r.start AND b.seen > clock_timestamp() - {LEASE})
    OR NOT EXISTS (SELECT 1 FROM writers me WHERE me.writer = %(me)s AND me.{ALIVE}
        AND me.since <= clock_timestamp() - %(patience)s * interval '1 s')))"""
"""Of a run, that somebody is at it; whoever could not reach the database lately cannot tell silence from an outage."""

# ---------------------------------------------------------------- writers

BEAT_QUIETLY = "SELECT set_config('synchronous_commit', 'off', true)"
"""In the same transaction as a beat, which nobody misses and which must not wait for a disk or a standby."""
LIVE = f"""
INSERT INTO writers (writer, name, seen, since) VALUES (%(me)s, %(name)s, clock_timestamp(), clock_timestamp())
ON CONFLICT (writer) DO UPDATE SET seen = clock_timestamp(),
    since = CASE WHEN writers.{ALIVE} THEN writers.since ELSE clock_timestamp() END
"""
DIE = "DELETE FROM writers WHERE writer = %(me)s"
CLEAN_WRITERS = "DELETE FROM writers WHERE seen < clock_timestamp() - interval '1 day'"
CLEAN_EFFECTS = """
DELETE FROM effects WHERE (run, start, call) IN (SELECT e.run, e.start, e.call FROM effects e
    WHERE e.sent < %(before)s AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = e.run AND r.ended IS NULL)
    LIMIT %(most)s) RETURNING 1
"""
"""What a background run did is known until it has ended, however long that takes."""
OLDEST_OF_ONE = "SELECT sent FROM effects WHERE principal = %(who)s ORDER BY sent DESC OFFSET %(kept)s LIMIT 1"
TRIM_EFFECTS = """
DELETE FROM effects WHERE (run, start, call) IN (SELECT e.run, e.start, e.call FROM effects e
    WHERE e.principal = %(who)s AND e.sent <= %(before)s AND e.state <> 'sent'
      AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = e.run AND r.ended IS NULL)
    LIMIT %(most)s FOR UPDATE OF e SKIP LOCKED) RETURNING 1
"""
CLEAN_RUNS = """
DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE ended < %(before)s LIMIT %(most)s) RETURNING 1
"""

# ---------------------------------------------------------------- calls

FENCE = "SELECT 1 FROM runs WHERE id = %(run)s AND start = %(start)s AND ended IS NULL FOR SHARE"
"""FOR SHARE, and nothing less, makes the next start of a background run wait."""


@cache
def send(keys: int, *, is_background: bool) -> str:
    """Return the statement that writes one call down, known by a fingerprint of each of so many keys.

    One call a statement: PostgreSQL plans arrays as if they were long, and reads the whole table for each of them.
    Who repeats it after a lost answer gets his row again.
    """
    return f"""
WITH fence AS MATERIALIZED ({FENCE if is_background else "SELECT 1"}),
known AS MATERIALIZED (
  SELECT e.run, e.line, e.sent FROM effects e
  WHERE NOT %(again)s AND EXISTS (SELECT 1 FROM fence)
    AND e.principal = %(principal)s AND e.state IN ('sent', 'unknown')
    AND e.fingerprint IN ({", ".join(f"%(print{n})s" for n in range(keys))})
    AND e.sent > %(sent)s::timestamptz - interval '{SAME_CALL_SECONDS} s'
    AND (e.run, e.start, e.call) <> (%(run)s, %(start)s, %(call)s) AND (e.state = 'unknown' OR {IS_DEAD})
  ORDER BY e.sent DESC LIMIT 1),
written AS (
  INSERT INTO effects (run, start, call, principal, tool, line, fingerprint, writer, ticket, sent, given_key, directory)
  SELECT %(run)s, %(start)s, %(call)s, %(principal)s, %(tool)s, %(line)s::integer, %(print0)s, %(me)s, %(ticket)s,
    %(sent)s, %(given_key)s, %(directory)s
  FROM fence WHERE NOT EXISTS (SELECT 1 FROM known)
  ON CONFLICT (run, start, call) DO UPDATE SET writer = EXCLUDED.writer
    WHERE effects.writer = EXCLUDED.writer AND effects.ticket = EXCLUDED.ticket
  RETURNING 1)
SELECT EXISTS (SELECT 1 FROM written), EXISTS (SELECT 1 FROM fence), k.run, k.line, k.sent
FROM (SELECT 1) one LEFT JOIN known k ON true
"""


END = """
UPDATE effects SET state = %(state)s, ended = %(ended)s, value = %(value)s
WHERE run = %(run)s AND start = %(start)s AND call = %(call)s AND writer = %(me)s
"""
BURY = """
INSERT INTO effects (run, start, call, principal, tool, line, fingerprint, writer, ticket, sent, given_key, directory,
  state, ended)
VALUES (%(run)s, %(start)s, %(call)s, %(principal)s, %(tool)s, %(line)s, %(print0)s, %(me)s, %(ticket)s, %(sent)s,
  %(given_key)s, %(directory)s, %(state)s, %(ended)s)
ON CONFLICT (run, start, call) DO UPDATE SET state = EXCLUDED.state, ended = EXCLUDED.ended
  WHERE effects.writer = EXCLUDED.writer AND effects.ticket = EXCLUDED.ticket
"""
"""The end of a call of which nobody knows whether it was written down: should that still arrive, it finds this."""
ENTRY = f"""e.run, e.call, e.tool, e.line, CASE WHEN e.state = 'sent' AND {IS_DEAD} THEN 'unknown' ELSE e.state END,
  e.sent, e.ended, e.start, e.value, e.given_key, e.directory"""
OF_RUN = (
    f"SELECT {ENTRY} FROM effects e WHERE e.run = %(run)s AND e.principal = %(who)s ORDER BY e.sent, e.start, e.call"
)
UNKNOWN = f"""
SELECT {ENTRY} FROM effects e WHERE e.principal = %(who)s AND e.state IN ('sent', 'unknown')
  AND (e.state = 'unknown' OR {IS_DEAD}) AND e.directory = coalesce(%(directory)s, e.directory)
ORDER BY e.sent DESC LIMIT %(most)s
"""
GOES_ON = "SELECT 1 FROM runs WHERE id = %(id)s AND start = %(start)s AND ended IS NULL"

# ---------------------------------------------------------------- runs in the background

ADD_IN_TURN = "SELECT pg_advisory_xact_lock(hashtextextended(encode(%(who)s, 'hex'), 0))"
ADD = """
WITH others AS MATERIALIZED (
  SELECT count(*) AS n FROM runs WHERE principal = %(who)s AND ended IS NULL AND id <> %(id)s),
added AS (INSERT INTO runs (id, principal, record, created)
  SELECT %(id)s, %(who)s, %(record)s, %(created)s FROM others WHERE n < %(most)s
  ON CONFLICT (id) DO UPDATE SET record = EXCLUDED.record WHERE runs.record = EXCLUDED.record RETURNING 1)
SELECT n < %(most)s, EXISTS (SELECT 1 FROM added) FROM others
"""
LOOK = f"SELECT record, start, writer, ending, {CARRIED} FROM runs r WHERE id = %(id)s"
_BEAT_ALL = """
INSERT INTO run_beats (run, start, seen) SELECT id, start, clock_timestamp() FROM {table}
ON CONFLICT (run) DO UPDATE SET start = EXCLUDED.start, seen = EXCLUDED.seen"""
BEGIN = f"""
WITH begun AS (
  UPDATE runs SET start = start + 1, writer = %(me)s, state = 'running', number = NULL, question = NULL, answer = NULL,
    begun = coalesce(begun, clock_timestamp())
  WHERE id = %(id)s AND start = %(start)s AND writer IS NOT DISTINCT FROM %(was)s::uuid AND ended IS NULL
  RETURNING id, start, cancelled),
beating AS ({_BEAT_ALL.format(table="begun")})
SELECT start, cancelled FROM begun
"""
BEAT = f"""
WITH going AS (SELECT id, start, cancelled, answer FROM runs WHERE id = %(id)s AND start = %(start)s AND ended IS NULL),
beating AS ({_BEAT_ALL.format(table="going")} WHERE run_beats.start <= EXCLUDED.start)
SELECT cancelled, answer FROM going
"""
_GOING = "WHERE id = %(id)s AND start = %(start)s AND ended IS NULL"
PACKS = f"UPDATE runs SET packs = coalesce(packs, %(packs)s) {_GOING} RETURNING packs"
ASK = f"""
UPDATE runs SET state = %(state)s, number = %(number)s, question = %(question)s, answer = NULL {_GOING} RETURNING 1
"""
ANSWER = """
UPDATE runs SET answer = %(answer)s, state = 'running', number = NULL, question = NULL
WHERE id = %(id)s AND principal = %(who)s AND ended IS NULL
  AND (state = 'asks' AND number = %(number)s OR answer = %(answer)s) RETURNING 1
"""
_ENDED = "ended = clock_timestamp(), number = NULL, question = NULL, answer = NULL"
END_RUN = f"""
WITH over AS (UPDATE runs SET state = %(state)s, ending = %(ending)s, {_ENDED} {_GOING} RETURNING id),
still AS (DELETE FROM run_beats WHERE run IN (SELECT id FROM over))
SELECT 1 FROM over
"""
CANCEL_WAITING = f"""
UPDATE runs SET cancelled = true, state = 'cancelled', ending = %(ending)s, {_ENDED}
WHERE id = %(id)s AND principal = %(who)s AND state = 'waiting' AND ended IS NULL
"""
CANCEL = "UPDATE runs SET cancelled = true WHERE id = %(id)s AND principal = %(who)s AND ended IS NULL"
_STATUS = "id, record, state, start, question, cancelled, ending"
RUN = f"SELECT {_STATUS} FROM runs WHERE id = %(id)s AND principal = %(who)s"
RUNS = f"SELECT {_STATUS} FROM runs WHERE principal = %(who)s ORDER BY created DESC, id LIMIT %(most)s"
LEFT_BEHIND = f"SELECT id FROM runs r WHERE ended IS NULL AND NOT {CARRIED} ORDER BY created"
WAITING = "SELECT count(*) FROM runs WHERE ended IS NULL AND state = 'waiting'"
_TAKEN = f"""
taken AS (UPDATE runs u SET state = 'running', writer = %(me)s FROM pick WHERE u.id = pick.id RETURNING u.id, u.start),
beating AS ({_BEAT_ALL.format(table="taken")})
SELECT id FROM taken
"""
TAKEN_BY_OTHERS = 100
"""How many of the next runs other workers may be about to take."""
TAKE = f"""
WITH open AS MATERIALIZED (SELECT id, principal, state, writer, created FROM runs WHERE ended IS NULL),
busy AS (SELECT principal, count(*) AS n, count(*) FILTER (WHERE writer = %(me)s) AS mine FROM open
  WHERE state IN ('running', 'asks') GROUP BY 1),
queue AS (SELECT id, principal, created, row_number() OVER (PARTITION BY principal ORDER BY created, id) AS k
  FROM open WHERE state = 'waiting'),
next AS MATERIALIZED (
  SELECT q.id, q.created, coalesce(b.n, 0) + q.k AS turn FROM queue q LEFT JOIN busy b ON b.principal = q.principal
  WHERE coalesce(b.mine, 0) + q.k <= %(share)s ORDER BY turn, q.created LIMIT %(most)s + {TAKEN_BY_OTHERS}),
pick AS MATERIALIZED (
  SELECT r.id FROM runs r JOIN next ON next.id = r.id WHERE r.state = 'waiting'
  ORDER BY next.turn, next.created LIMIT %(most)s FOR UPDATE OF r SKIP LOCKED),
{_TAKEN}
"""
"""The state is asked for once more of the locked row: elsewhere, what others have taken meanwhile looks as it was.
Only the next few are locked, each found by its id: where no run waited when PostgreSQL last counted them, it would take
the index of open runs for short, and read all of it for each run that waits."""
TAKE_OVER = f"""
WITH silent AS MATERIALIZED (SELECT id, start, writer FROM runs r
  WHERE ended IS NULL AND state <> 'waiting' AND NOT {CARRIED} ORDER BY created LIMIT %(most)s),
pick AS MATERIALIZED (SELECT r.id FROM runs r JOIN silent s ON s.id = r.id
  WHERE r.ended IS NULL AND r.start = s.start AND r.writer = s.writer FOR UPDATE OF r SKIP LOCKED),
{_TAKEN}
"""
