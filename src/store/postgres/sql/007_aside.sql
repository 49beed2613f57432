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
