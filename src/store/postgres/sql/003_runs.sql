-- Runs in the queue. Every function is one transaction that locks the run's row first, a parent's before its child's, and the
-- message in the queue after it: so none of them can wait for another in a circle. The queue says who may go on, and when;
-- `claim` and the key of `line` say who may write.

CREATE TYPE nietz.begun AS (run bigint, claim bigint);
CREATE TYPE nietz.taken AS (
    run bigint, claim bigint, name text, flow text, tag text, parent bigint, deliveries int, began_by name,
    last_seq bigint, answered int);

-- Whom a change concerns: workers without work, or those who look at one run.
CREATE FUNCTION nietz.tell(workspace int, what text) RETURNS void
LANGUAGE sql AS $$
    SELECT pg_notify(w.channel, what) FROM nietz.workspace w WHERE w.id = workspace
$$;

CREATE FUNCTION nietz.queue_name(workspace int, tag text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF tag !~ '^([a-z0-9]+([_-][a-z0-9]+)*)?$' OR length(tag) > 24 THEN
        RAISE EXCEPTION 'a tag is up to 24 of a-z, 0-9, - and _, such as gpu' USING ERRCODE = 'NZ011', DETAIL = tag;
    END IF;
    RETURN 'nietz_' || workspace || CASE tag WHEN '' THEN '' ELSE '_' || tag END;
END $$;

-- Locks a run for a caller who may do something with it.
CREATE FUNCTION nietz.locked(run bigint, kinds text[]) RETURNS nietz.run
LANGUAGE plpgsql AS $$
DECLARE
    it nietz.run;
BEGIN
    SELECT r.* INTO it FROM nietz.run r WHERE r.id = locked.run FOR UPDATE;
    PERFORM nietz.demand(coalesce(it.workspace, 0), kinds);
    IF it.id IS NULL THEN
        RAISE EXCEPTION 'there is no run %', locked.run USING ERRCODE = 'NZ009';
    END IF;
    RETURN it;
END $$;

-- Locks the run of a caller who has claimed it, and fails where somebody else has, or it is over.
CREATE FUNCTION nietz.held(run bigint, claim bigint) RETURNS nietz.run
LANGUAGE plpgsql AS $$
DECLARE
    it nietz.run;
BEGIN
    SELECT r.* INTO it FROM nietz.run r WHERE r.id = held.run FOR UPDATE;
    IF it.claimed_by IS DISTINCT FROM session_user THEN
        PERFORM nietz.demand(coalesce(it.workspace, 0), '{worker}');
    END IF;
    IF it.id IS NULL THEN
        RAISE EXCEPTION 'there is no run %', held.run USING ERRCODE = 'NZ009';
    ELSIF it.status = 'cancelled' THEN
        RAISE EXCEPTION 'the run % was cancelled', it.name USING ERRCODE = 'NZ002';
    ELSIF it.claim <> held.claim OR it.claimed_by <> session_user THEN
        RAISE EXCEPTION 'another worker has taken the run %', it.name
            USING ERRCODE = 'NZ001', DETAIL = coalesce(it.worker, '');
    ELSIF it.status <> 'running' THEN
        RAISE EXCEPTION 'the run % is %, and no worker is at it', it.name, it.status
            USING ERRCODE = 'NZ003', DETAIL = it.status;
    END IF;
    -- A line that was acknowledged is on the disk, whatever the session has set.
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    RETURN it;
END $$;

-- Whether these very lines stand there, by this claim: what a repeated call finds.
CREATE FUNCTION nietz.is_written(run bigint, claim bigint, seq bigint, lines text[]) RETURNS boolean
LANGUAGE sql AS $$
    SELECT NOT EXISTS (
        SELECT FROM unnest(lines) WITH ORDINALITY AS wanted (body, place)
        LEFT JOIN nietz.line l ON l.run = is_written.run AND l.seq = is_written.seq + wanted.place - 1
            AND l.claim = is_written.claim AND l.body = wanted.body
        WHERE l.run IS NULL)
$$;

-- Writes lines of a run whose row is locked, and returns the number of the last one.
CREATE FUNCTION nietz.write(run bigint, claim bigint, seq bigint, lines text[]) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF seq > 1 AND NOT EXISTS (SELECT FROM nietz.line l WHERE l.run = write.run AND l.seq = write.seq - 1) OR seq < 1 THEN
        RAISE EXCEPTION 'the line before line % of the run % is not there', seq, run USING ERRCODE = 'NZ011';
    END IF;
    FOR at IN 1..cardinality(lines) LOOP
        INSERT INTO nietz.line (run, seq, body, claim)
            VALUES (write.run, write.seq + at - 1, lines[at], write.claim)
            ON CONFLICT ON CONSTRAINT line_pkey DO NOTHING;
        IF NOT FOUND AND NOT nietz.is_written(run, claim, seq + at - 1, lines[at:at]) THEN
            RAISE EXCEPTION 'line % of the run % was written by another worker', seq + at - 1, run USING ERRCODE = 'NZ001';
        END IF;
    END LOOP;
    RETURN seq + cardinality(lines) - 1;
END $$;

-- Calls that are not under way any more use nothing: those without an outcome are made again, and reserved again.
CREATE FUNCTION nietz.unreserve(it nietz.run, only_key text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    old nietz.reserved;
BEGIN
    FOR old IN DELETE FROM nietz.reserved r WHERE r.run = it.id AND (only_key IS NULL OR r.key = only_key) RETURNING r.* LOOP
        UPDATE nietz.spent s SET reserved_calls = s.reserved_calls - old.calls,
            reserved_tokens = s.reserved_tokens - old.tokens, reserved_cost = s.reserved_cost - old.cost
            WHERE s.workspace = it.workspace AND s.day = old.day;
    END LOOP;
END $$;

-- Reserves what a call may use, or counts what it did use, in the transaction of its line.
CREATE FUNCTION nietz.reserve(it nietz.run, money jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    one jsonb;
    new_calls bigint;
    new_tokens bigint;
    new_cost numeric;
    today date := (now() AT TIME ZONE 'UTC')::date;
    used nietz.spent;
    most nietz.budget;
BEGIN
    FOR one IN SELECT value FROM jsonb_array_elements(money) LOOP
        new_calls := coalesce((one->>'calls')::bigint, 0);
        new_tokens := coalesce((one->>'tokens')::bigint, 0);
        new_cost := coalesce((one->>'cost')::numeric, 0);
        PERFORM nietz.unreserve(it, coalesce(one->>'key', ''));
        INSERT INTO nietz.spent (workspace, day) VALUES (it.workspace, today) ON CONFLICT ON CONSTRAINT spent_pkey DO NOTHING;
        SELECT s.* INTO used FROM nietz.spent s WHERE s.workspace = it.workspace AND s.day = today FOR UPDATE;
        IF coalesce((one->>'used')::boolean, false) THEN
            UPDATE nietz.spent s SET calls = s.calls + new_calls, tokens = s.tokens + new_tokens, cost = s.cost + new_cost
                WHERE s.workspace = it.workspace AND s.day = today;
            CONTINUE;
        END IF;
        SELECT b.* INTO most FROM nietz.budget b WHERE b.workspace = it.workspace;
        IF used.calls + used.reserved_calls + new_calls > most.calls
            OR used.tokens + used.reserved_tokens + new_tokens > most.tokens
            OR used.cost + used.reserved_cost + new_cost > most.cost THEN
            RAISE EXCEPTION 'the next call could go over what the team may use today'
                USING ERRCODE = 'NZ005', DETAIL = jsonb_build_object('limit', to_jsonb(most), 'used', to_jsonb(used))::text;
        END IF;
        UPDATE nietz.spent s SET reserved_calls = s.reserved_calls + new_calls,
            reserved_tokens = s.reserved_tokens + new_tokens, reserved_cost = s.reserved_cost + new_cost
            WHERE s.workspace = it.workspace AND s.day = today;
        INSERT INTO nietz.reserved (run, key, day, calls, tokens, cost)
            VALUES (it.id, coalesce(one->>'key', ''), today, new_calls, new_tokens, new_cost);
    END LOOP;
END $$;

-- Puts a locked run into the queue, at once or later, with the one message that it may have.
CREATE FUNCTION nietz.go_on(it nietz.run, at timestamptz DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    due timestamptz := coalesce(at, clock_timestamp());
    sent bigint := it.message;
BEGIN
    IF sent IS NULL OR NOT EXISTS (SELECT FROM pgmq.set_vt(it.queue, sent, due)) THEN
        SELECT s INTO sent FROM pgmq.send(it.queue, jsonb_build_object('run', it.id), due) s;
    END IF;
    UPDATE nietz.run r SET status = 'queued', message = sent, wake = at, worker = NULL, waiting_since = NULL, changed = now()
        WHERE r.id = it.id;
    PERFORM nietz.tell(it.workspace, 'work ' || it.tag);
    PERFORM nietz.tell(it.workspace, 'run ' || it.id || ' queued');
END $$;

-- Takes a locked run out of the queue: it waits, or is over.
CREATE FUNCTION nietz.leave(it nietz.run, status text, summary jsonb DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF it.message IS NOT NULL THEN
        PERFORM pgmq.delete(it.queue, it.message);
    END IF;
    UPDATE nietz.run r SET status = leave.status, message = NULL, wake = NULL, worker = NULL, changed = now(),
        summary = coalesce(leave.summary, r.summary),
        waiting_since = CASE WHEN leave.status IN ('waiting', 'stuck') THEN now() END
        WHERE r.id = it.id;
    PERFORM nietz.unreserve(it);
    PERFORM nietz.tell(it.workspace, 'run ' || it.id || ' ' || leave.status);
END $$;

-- Lets a run go on that waits for this one, which is over. Its row is locked by the caller.
CREATE FUNCTION nietz.wake_parent(it nietz.run) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    above nietz.run;
BEGIN
    SELECT r.* INTO above FROM nietz.run r WHERE r.id = it.parent;
    IF above.status = 'waiting' AND it.id = ANY (above.awaits) THEN
        PERFORM nietz.go_on(above);
    END IF;
END $$;

CREATE FUNCTION nietz.enqueue(
    workspace int, name text, flow text, lines text[], summary jsonb, tag text DEFAULT '', at timestamptz DEFAULT NULL,
    began_as text DEFAULT '', parent bigint DEFAULT NULL, parent_claim bigint DEFAULT NULL,
    held_by text DEFAULT NULL, vt int DEFAULT 15) RETURNS nietz.begun
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
    above nietz.run;
    queue text := nietz.queue_name(workspace, tag);
BEGIN
    IF held_by IS NOT NULL THEN
        PERFORM nietz.demand(workspace, '{worker}');
    END IF;
    IF parent IS NOT NULL THEN
        above := nietz.held(parent, parent_claim);
        IF above.workspace <> enqueue.workspace THEN
            RAISE EXCEPTION 'a child is of its parent''s workspace' USING ERRCODE = 'NZ011';
        END IF;
    ELSE
        PERFORM nietz.demand(workspace, '{asker}');
    END IF;
    IF coalesce(cardinality(lines), 0) = 0 THEN
        RAISE EXCEPTION 'a run begins with a line' USING ERRCODE = 'NZ011';
    END IF;
    IF NOT EXISTS (SELECT FROM pgmq.meta m WHERE m.queue_name = queue) THEN
        PERFORM pgmq.create(queue);
    END IF;
    -- `stopped` until it has its message; nobody sees that.
    INSERT INTO nietz.run (workspace, name, flow, status, tag, queue, parent, summary, began_by, began_as)
        VALUES (enqueue.workspace, enqueue.name, enqueue.flow, 'stopped', enqueue.tag, queue, enqueue.parent,
            enqueue.summary, coalesce(above.began_by, session_user), enqueue.began_as)
        ON CONFLICT ON CONSTRAINT run_workspace_name_key DO NOTHING
        RETURNING * INTO it;
    IF it.id IS NULL THEN
        RAISE EXCEPTION 'there is a run % already', enqueue.name USING ERRCODE = 'NZ010';
    END IF;
    PERFORM nietz.write(it.id, it.claim, 1, lines);
    IF held_by IS NOT NULL THEN
        RETURN (it.id, nietz.claimed(it, held_by, vt));
    END IF;
    PERFORM nietz.go_on(it, at);
    RETURN (it.id, NULL::bigint);
END $$;

-- Gives a locked run to a worker until `vt` seconds from now, and returns the new claim.
CREATE FUNCTION nietz.claimed(it nietz.run, worker text, vt int) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    sent bigint := it.message;
    due timestamptz := clock_timestamp() + make_interval(secs => vt);
    new_claim bigint := nextval('nietz.claims');
BEGIN
    IF sent IS NULL OR NOT EXISTS (SELECT FROM pgmq.set_vt(it.queue, sent, due)) THEN
        SELECT s INTO sent FROM pgmq.send(it.queue, jsonb_build_object('run', it.id), due) s;
    END IF;
    UPDATE nietz.run r SET status = 'running', message = sent, claim = new_claim, claimed_by = session_user,
        worker = claimed.worker, wake = NULL, waiting_since = NULL, questions = '[]', awaits = '{}', changed = now()
        WHERE r.id = it.id;
    PERFORM nietz.unreserve(it);
    PERFORM nietz.tell(it.workspace, 'run ' || it.id || ' running');
    RETURN new_claim;
END $$;

CREATE FUNCTION nietz.hold(run bigint, worker text, vt int DEFAULT 15) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.locked(run, '{worker}');
    until timestamptz;
BEGIN
    IF it.status = 'cancelled' THEN
        RAISE EXCEPTION 'the run % was cancelled', it.name USING ERRCODE = 'NZ002';
    ELSIF it.status = 'done' THEN
        RAISE EXCEPTION 'the run % is done', it.name USING ERRCODE = 'NZ003', DETAIL = it.status;
    ELSIF it.status = 'running' THEN
        EXECUTE format('SELECT q.vt FROM pgmq.%I q WHERE q.msg_id = $1', 'q_' || it.queue) INTO until USING it.message;
        IF until > clock_timestamp() THEN
            RAISE EXCEPTION 'another process is at the run %', it.name
                USING ERRCODE = 'NZ007', DETAIL = coalesce(it.worker, '');
        END IF;
    END IF;
    RETURN nietz.claimed(it, worker, vt);
END $$;

-- Reads the next message that is due and claims its run. `holding` are runs that the caller believes to hold: they are left to it.
CREATE FUNCTION nietz.take(workspace int, tags text[], vt int, worker text, holding bigint[] DEFAULT '{}')
RETURNS SETOF nietz.taken
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    -- The first delivery and five more.
    most constant int := 6;
    wanted text;
    queue text;
    sent pgmq.message_record;
    it nietz.run;
BEGIN
    PERFORM nietz.demand(workspace, '{worker}');
    FOREACH wanted IN ARRAY tags LOOP
        queue := nietz.queue_name(workspace, wanted);
        CONTINUE WHEN NOT EXISTS (SELECT FROM pgmq.meta m WHERE m.queue_name = queue);
        -- What is cleared away here is not the caller's to do again: the bound is for a queue of nothing else.
        FOR tries IN 1..1000 LOOP
            sent := NULL;
            BEGIN
                SELECT q.* INTO sent FROM pgmq.read(queue, vt, 1) q;
                SELECT r.* INTO it FROM nietz.run r WHERE r.id = (sent.message->>'run')::bigint FOR UPDATE NOWAIT;
            EXCEPTION WHEN lock_not_available THEN
                -- The message is free again, so that whoever has the run can delete it; then the order is the usual one.
                SELECT r.* INTO it FROM nietz.run r WHERE r.id = (sent.message->>'run')::bigint FOR UPDATE;
                SELECT q.* INTO sent FROM pgmq.read(queue, vt, 1, jsonb_build_object('run', it.id)) q;
                CONTINUE WHEN sent.msg_id IS NULL;
            END;
            EXIT WHEN sent.msg_id IS NULL;
            IF it.id IS NULL OR it.message IS DISTINCT FROM sent.msg_id OR it.queue <> queue THEN
                PERFORM pgmq.delete(queue, sent.msg_id);
            ELSIF it.id = ANY (holding) AND it.status = 'running' THEN
                CONTINUE;
            ELSIF sent.read_ct > most THEN
                PERFORM nietz.leave(it, 'stuck');
            ELSE
                RETURN NEXT (it.id, nietz.claimed(it, worker, vt), it.name, it.flow, it.tag, it.parent, sent.read_ct, it.began_by,
                    (SELECT max(l.seq) FROM nietz.line l WHERE l.run = it.id),
                    (SELECT count(*)::int FROM nietz.answer a WHERE a.run = it.id));
                RETURN;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- Holds a run for `vt` seconds more. False: it is lost, and whoever believes to hold it stops at once.
CREATE FUNCTION nietz.beat(run bigint, claim bigint, vt int) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
BEGIN
    SELECT r.* INTO it FROM nietz.run r WHERE r.id = beat.run AND r.claim = beat.claim AND r.claimed_by = session_user
        AND r.status = 'running';
    RETURN it.id IS NOT NULL AND nietz.may(it.workspace, '{worker}')
        AND EXISTS (SELECT FROM pgmq.set_vt(it.queue, it.message, clock_timestamp() + make_interval(secs => vt)));
END $$;

-- The most frequent call by far, so it looks first whether all is as it should be, and asks `held` for what is wrong only then.
CREATE FUNCTION nietz.append(run bigint, claim bigint, seq bigint, lines text[], money jsonb DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
BEGIN
    PERFORM FROM nietz.run r WHERE r.id = append.run AND r.claim = append.claim AND r.claimed_by = session_user
        AND r.status = 'running' FOR UPDATE;
    IF NOT FOUND OR money IS NOT NULL OR current_setting('synchronous_commit') = 'off' THEN
        it := nietz.held(run, claim);
        IF money IS NOT NULL AND NOT nietz.is_written(run, claim, seq, lines) THEN
            PERFORM nietz.reserve(it, money);
        END IF;
    END IF;
    RETURN nietz.write(run, claim, seq, lines);
END $$;

-- What a call that was repeated after a lost connection finds: the same lines, and the run where the first one left it.
CREATE FUNCTION nietz.was_left(run bigint, claim bigint, seq bigint, lines text[], left_as text[]) RETURNS boolean
LANGUAGE sql AS $$
    SELECT EXISTS (
        SELECT FROM nietz.run r WHERE r.id = was_left.run AND r.claim = was_left.claim AND r.claimed_by = session_user
            AND r.status = ANY (left_as)) AND nietz.is_written(run, claim, seq, lines)
$$;

CREATE FUNCTION nietz.park(
    run bigint, claim bigint, seq bigint, lines text[], questions jsonb, summary jsonb,
    wake timestamptz DEFAULT NULL, awaits bigint[] DEFAULT '{}') RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
    waits boolean := jsonb_array_length(questions) > 0 OR cardinality(awaits) > 0;
BEGIN
    IF nietz.was_left(run, claim, seq, lines, '{waiting,queued}') THEN
        RETURN true;
    END IF;
    it := nietz.held(run, claim);
    IF NOT waits AND wake IS NULL THEN
        RAISE EXCEPTION 'a run that waits says for what' USING ERRCODE = 'NZ011';
    END IF;
    IF EXISTS (
        SELECT FROM nietz.answer a JOIN jsonb_array_elements(questions) AS question ON question->>'key' = a.key
        WHERE a.run = park.run)
        OR EXISTS (
        SELECT FROM nietz.run r WHERE r.id = ANY (park.awaits) AND r.status IN ('done', 'failed', 'cancelled')) THEN
        RETURN false;
    END IF;
    PERFORM nietz.write(it.id, it.claim, seq, lines);
    PERFORM nietz.leave(it, 'waiting', summary);
    UPDATE nietz.run r SET questions = park.questions, awaits = park.awaits WHERE r.id = park.run;
    IF wake IS NOT NULL THEN
        SELECT s INTO it.message FROM pgmq.send(it.queue, jsonb_build_object('run', it.id), wake) s;
        UPDATE nietz.run r SET message = it.message, wake = park.wake,
            status = CASE WHEN waits THEN 'waiting' ELSE 'queued' END,
            waiting_since = CASE WHEN waits THEN r.waiting_since END
            WHERE r.id = park.run;
    END IF;
    RETURN true;
END $$;

CREATE FUNCTION nietz.finish(run bigint, claim bigint, seq bigint, lines text[], status text, summary jsonb) RETURNS void
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
    PERFORM nietz.wake_parent(it);
END $$;

-- Hands a run on, at its next line: to another worker at once, or to nobody where a person stopped it. A new message, because
-- an orderly end is no sign of a run that kills its workers.
CREATE FUNCTION nietz.release(run bigint, claim bigint, stop boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.held(run, claim);
BEGIN
    PERFORM nietz.leave(it, 'stopped');
    IF NOT stop THEN
        it.message := NULL;
        PERFORM nietz.go_on(it);
    END IF;
END $$;

-- Fails unless who connected may see the run.
CREATE FUNCTION nietz.demand_seen(run bigint) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
    of_workspace int := (SELECT r.workspace FROM nietz.run r WHERE r.id = demand_seen.run);
BEGIN
    PERFORM nietz.demand(coalesce(of_workspace, 0), '{asker,worker,reader}');
    IF of_workspace IS NULL THEN
        RAISE EXCEPTION 'there is no run %', demand_seen.run USING ERRCODE = 'NZ009';
    END IF;
END $$;

CREATE FUNCTION nietz.state(run bigint, claim bigint) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
BEGIN
    PERFORM nietz.demand_seen(run);
    SELECT r.* INTO it FROM nietz.run r WHERE r.id = state.run;
    RETURN CASE
        WHEN it.status <> 'running' THEN it.status
        WHEN it.claim = state.claim AND it.claimed_by = session_user THEN 'held'
        ELSE 'fenced' END;
END $$;

CREATE FUNCTION nietz.requeue(run bigint, at timestamptz DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.locked(run, '{asker}');
BEGIN
    IF it.status NOT IN ('stuck', 'failed', 'stopped', 'waiting', 'queued') THEN
        RAISE EXCEPTION 'the run % is %', it.name, it.status
            USING ERRCODE = CASE it.status WHEN 'cancelled' THEN 'NZ002' WHEN 'running' THEN 'NZ007' ELSE 'NZ003' END,
            DETAIL = it.status;
    END IF;
    PERFORM nietz.go_on(it, at);
END $$;

-- Cancels a run and those that it began, and returns what it was; of one that is over nothing is changed.
CREATE FUNCTION nietz.cancel(run bigint) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
    child nietz.run;
    level bigint[];
    below bigint[];
BEGIN
    PERFORM FROM nietz.run r WHERE r.id = (SELECT c.parent FROM nietz.run c WHERE c.id = cancel.run) FOR UPDATE;
    it := nietz.locked(run, '{asker}');
    IF it.status IN ('done', 'failed', 'cancelled') THEN
        RETURN it.status;
    END IF;
    PERFORM nietz.leave(it, 'cancelled');
    PERFORM nietz.wake_parent(it);
    level := ARRAY[it.id];
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
    RETURN it.status;
END $$;

-- Takes in a run that is not to be queued, with all of its lines.
CREATE FUNCTION nietz.keep(
    workspace int, name text, flow text, status text, lines text[], summary jsonb, began_as text DEFAULT '') RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run;
BEGIN
    PERFORM nietz.demand(workspace, '{asker}');
    IF status NOT IN ('done', 'failed', 'cancelled', 'stopped') OR coalesce(cardinality(lines), 0) = 0 THEN
        RAISE EXCEPTION 'a run that is taken in has lines and is over or stopped' USING ERRCODE = 'NZ011';
    END IF;
    INSERT INTO nietz.run (workspace, name, flow, status, queue, summary, began_as)
        VALUES (keep.workspace, keep.name, keep.flow, keep.status, nietz.queue_name(keep.workspace, ''), keep.summary, keep.began_as)
        ON CONFLICT ON CONSTRAINT run_workspace_name_key DO NOTHING
        RETURNING * INTO it;
    IF it.id IS NULL THEN
        RAISE EXCEPTION 'there is a run % already', keep.name USING ERRCODE = 'NZ010';
    END IF;
    IF NOT EXISTS (SELECT FROM pgmq.meta m WHERE m.queue_name = it.queue) THEN
        PERFORM pgmq.create(it.queue);
    END IF;
    PERFORM nietz.write(it.id, it.claim, 1, lines);
    RETURN it.id;
END $$;

CREATE FUNCTION nietz.remove(run bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.locked(run, '{asker}');
BEGIN
    IF it.status IN ('queued', 'running') THEN
        RAISE EXCEPTION 'the run % is %: cancel it first', it.name, it.status USING ERRCODE = 'NZ007', DETAIL = it.status;
    END IF;
    PERFORM nietz.leave(it, 'cancelled');
    UPDATE nietz.run r SET parent = NULL WHERE r.parent = it.id;
    DELETE FROM nietz.answer a WHERE a.run = it.id;
    -- Its images and PDFs, which nobody else names.
    DELETE FROM nietz.document d WHERE d.workspace = it.workspace AND d.scope = it.began_by
        AND starts_with(d.path, '.nietz/files/' || it.name || '/');
    DELETE FROM nietz.line l WHERE l.run = it.id;
    DELETE FROM nietz.run r WHERE r.id = it.id;
END $$;

-- Removes runs that were over before a time; documents stay.
CREATE FUNCTION nietz.prune(workspace int, before timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old bigint;
    removed bigint := 0;
BEGIN
    PERFORM nietz.demand(workspace, '{asker}');
    FOR old IN SELECT r.id FROM nietz.run r
        WHERE r.workspace = prune.workspace AND r.status IN ('done', 'failed', 'cancelled') AND r.changed < before ORDER BY r.id LOOP
        PERFORM nietz.remove(old);
        removed := removed + 1;
    END LOOP;
    RETURN removed;
END $$;

CREATE FUNCTION nietz.lines(run bigint, after bigint DEFAULT 0) RETURNS TABLE (seq bigint, body text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_seen(run);
    RETURN QUERY SELECT l.seq, l.body FROM nietz.line l WHERE l.run = lines.run AND l.seq > after ORDER BY l.seq;
END $$;

CREATE FUNCTION nietz.queue_metrics(workspace int)
RETURNS TABLE (tag text, length bigint, visible bigint, oldest_seconds int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand(workspace, '{asker,worker,reader}');
    RETURN QUERY
        SELECT DISTINCT r.tag, m.queue_length, m.queue_visible_length, m.oldest_msg_age_sec
        FROM (SELECT DISTINCT run.tag, run.queue FROM nietz.run run WHERE run.workspace = queue_metrics.workspace) r
        JOIN pgmq.meta known ON known.queue_name = r.queue
        CROSS JOIN LATERAL pgmq.metrics(r.queue) m;
END $$;
