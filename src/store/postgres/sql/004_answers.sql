-- Questions of runs and answers from anywhere. An answer and the parking of its run lock the same row: one of them is first.

CREATE TYPE nietz.answered AS (result text, who name, said_as text, at timestamptz);

-- Shows what a run asks while other tasks of it still go on.
CREATE FUNCTION nietz.asked(run bigint, claim bigint, questions jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.held(run, claim);
BEGIN
    UPDATE nietz.run r SET questions = asked.questions WHERE r.id = it.id;
    PERFORM nietz.tell(it.workspace, 'run ' || it.id || ' asked');
END $$;

CREATE FUNCTION nietz.answer(run bigint, key text, value jsonb, said_as text DEFAULT '') RETURNS nietz.answered
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.locked(run, '{asker}');
    given nietz.answer;
BEGIN
    SELECT a.* INTO given FROM nietz.answer a WHERE a.run = answer.run AND a.key = answer.key;
    IF given.run IS NOT NULL THEN
        RETURN ('second'::text, given.who, given.said_as, given.at);
    ELSIF it.status = 'cancelled' THEN
        RAISE EXCEPTION 'the run % was cancelled', it.name USING ERRCODE = 'NZ002';
    ELSIF it.status IN ('done', 'failed') THEN
        RAISE EXCEPTION 'the run % is over: %', it.name, it.status USING ERRCODE = 'NZ003', DETAIL = it.status;
    ELSIF it.status = 'waiting'
        AND NOT EXISTS (SELECT FROM jsonb_array_elements(it.questions) one WHERE one->>'key' = answer.key) THEN
        RAISE EXCEPTION 'the run % does not ask that', it.name USING ERRCODE = 'NZ006', DETAIL = answer.key;
    END IF;
    INSERT INTO nietz.answer (run, key, value, said_as) VALUES (answer.run, answer.key, answer.value, answer.said_as)
        RETURNING * INTO given;
    IF it.status = 'waiting' THEN
        PERFORM nietz.go_on(it);
        RETURN ('queued'::text, given.who, given.said_as, given.at);
    END IF;
    PERFORM nietz.tell(it.workspace, 'run ' || it.id || ' answered');
    RETURN ('kept'::text, given.who, given.said_as, given.at);
END $$;

CREATE FUNCTION nietz.answers(run bigint) RETURNS SETOF nietz.answer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_seen(run);
    RETURN QUERY SELECT a.* FROM nietz.answer a WHERE a.run = answers.run ORDER BY a.at, a.key;
END $$;

-- Removes an answer that fits nothing, so that it is not met again.
CREATE FUNCTION nietz.refuse(run bigint, claim bigint, key text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    it nietz.run := nietz.held(run, claim);
BEGIN
    DELETE FROM nietz.answer a WHERE a.run = it.id AND a.key = refuse.key;
END $$;
