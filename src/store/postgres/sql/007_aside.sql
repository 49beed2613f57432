-- A run that would fail in the same way on each worker is put aside at once, with why, in place of being delivered again and again.

-- Notes why a worker cannot do a run; with `at_once` nobody takes it until somebody requeues it. Otherwise it is delivered again, and
-- what was noted last is shown once it is stuck.
CREATE FUNCTION nietz.put_aside(run bigint, claim bigint, why text, at_once boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.held(run, claim);
BEGIN
    IF at_once THEN
        PERFORM nietz.leave(it, 'stuck');
    END IF;
    UPDATE nietz.run r SET questions = jsonb_build_array(jsonb_build_object('key', '', 'prompt', why)) WHERE r.id = it.id;
END $$;

REVOKE ALL ON FUNCTION nietz.put_aside FROM PUBLIC;
GRANT EXECUTE ON FUNCTION nietz.put_aside TO nietz_worker;

-- Cancels what a run has begun that is not over, and what that has begun. Its own row is locked by the caller.
CREATE FUNCTION nietz.cancel_below(it nietz.run) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    child nietz.run;
    level bigint[] := ARRAY[it.id];
    below bigint[];
BEGIN
    WHILE cardinality(level) > 0 LOOP
        below := '{}';
        FOR child IN SELECT r.* FROM nietz.run r WHERE r.parent = ANY (level) ORDER BY r.id FOR UPDATE LOOP
            below := below || child.id;
            IF child.status NOT IN ('done', 'failed', 'cancelled') THEN
                PERFORM nietz.leave(child, 'cancelled');
            END IF;
        END LOOP;
        level := below;
    END LOOP;
END $$;

-- As in 003. A run that is done needs nothing of what it has begun any more; one that failed may be gone on with.
CREATE OR REPLACE FUNCTION nietz.finish(run bigint, claim bigint, seq bigint, lines text[], status text, summary jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
BEGIN
    IF status NOT IN ('done', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'a run ends as done, failed or cancelled' USING ERRCODE = 'NZ011', DETAIL = status;
    END IF;
    PERFORM FROM nietz.run r WHERE r.id = (SELECT c.parent FROM nietz.run c WHERE c.id = finish.run) FOR UPDATE;
    IF nietz.was_left(run, claim, seq, lines, ARRAY[status]) THEN
        RETURN;
    END IF;
    it := nietz.held(run, claim);
    PERFORM nietz.write(it.id, it.claim, seq, lines);
    PERFORM nietz.leave(it, status, summary);
    IF status = 'done' THEN
        PERFORM nietz.cancel_below(it);
    END IF;
    PERFORM nietz.wake_parent(it);
END $$;

REVOKE ALL ON FUNCTION nietz.cancel_below FROM PUBLIC;
