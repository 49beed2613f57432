-- Who sees and may do what. `session_user` is who connected, also inside of functions that run as the schema's owner.

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY['nietz_asker', 'nietz_worker', 'nietz_reader'] LOOP
        -- Roles belong to the server: another database may have made them, also at this moment.
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', wanted);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $$;

-- Whether who connected owns the schema, is a member of its owner, or a superuser.
CREATE FUNCTION nietz.owns() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_has_role(session_user, n.nspowner, 'member') FROM pg_namespace n WHERE n.nspname = 'nietz'
$$;

CREATE FUNCTION nietz.may(workspace int, kinds text[]) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT nietz.owns() OR EXISTS (
        SELECT FROM nietz.member m JOIN pg_roles r ON r.rolname = m.role
        WHERE m.workspace = may.workspace AND m.kind = ANY (kinds) AND pg_has_role(session_user, r.oid, 'member'))
$$;

-- The workspaces in which who connected is one of these.
CREATE FUNCTION nietz.seen(kinds text[]) RETURNS int[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT m.workspace), '{}')
    FROM nietz.member m JOIN pg_roles r ON r.rolname = m.role
    WHERE m.kind = ANY (kinds) AND pg_has_role(session_user, r.oid, 'member')
$$;

-- Fails as if there were nothing, for who is of another workspace, and says what is missing to who is of this one.
CREATE FUNCTION nietz.demand(workspace int, kinds text[]) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF nietz.may(workspace, kinds) THEN
        RETURN;
    END IF;
    IF nietz.may(workspace, '{asker,worker,reader}') THEN
        RAISE EXCEPTION 'the role % is no % of this workspace', session_user, array_to_string(kinds, ' or ')
            USING ERRCODE = 'NZ008';
    END IF;
    RAISE EXCEPTION 'there is no such run or workspace for the role %', session_user USING ERRCODE = 'NZ009';
END $$;

CREATE FUNCTION nietz.demand_owner() RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NOT nietz.owns() THEN
        RAISE EXCEPTION 'only the owner of the schema nietz may do that, and % is not', session_user
            USING ERRCODE = 'NZ008';
    END IF;
END $$;

CREATE FUNCTION nietz.demand_signer(workspace int) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand(workspace, '{asker,worker,reader}');
    IF NOT nietz.owns() AND NOT EXISTS (
        SELECT FROM nietz.member m JOIN pg_roles r ON r.rolname = m.role
        WHERE m.workspace = demand_signer.workspace AND m.signs AND pg_has_role(session_user, r.oid, 'member')) THEN
        RAISE EXCEPTION 'the role % may not sign anything off in this workspace', session_user USING ERRCODE = 'NZ008';
    END IF;
END $$;

CREATE FUNCTION nietz.workspace(name text, make boolean DEFAULT false) RETURNS int
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found int;
BEGIN
    SELECT w.id INTO found FROM nietz.workspace w WHERE w.name = workspace.name;
    IF found IS NULL AND make THEN
        PERFORM nietz.demand_owner();
        INSERT INTO nietz.workspace (name) VALUES (workspace.name) ON CONFLICT DO NOTHING;
        SELECT w.id INTO found FROM nietz.workspace w WHERE w.name = workspace.name;
    END IF;
    PERFORM nietz.demand(coalesce(found, 0), '{asker,worker,reader}');
    IF found IS NULL THEN
        RAISE EXCEPTION 'there is no workspace %', workspace.name USING ERRCODE = 'NZ009';
    END IF;
    RETURN found;
END $$;

CREATE FUNCTION nietz.admit(workspace int, role name, kind text, signs boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_owner();
    INSERT INTO nietz.member (workspace, role, kind, signs)
        VALUES (admit.workspace, admit.role, admit.kind, admit.signs)
        ON CONFLICT ON CONSTRAINT member_pkey DO UPDATE SET signs = excluded.signs;
    EXECUTE format('GRANT %I TO %I', 'nietz_' || kind, role);
END $$;

-- The grant stays: the role may be a member of another workspace, and without a row here it sees nothing of this one.
CREATE FUNCTION nietz.dismiss(workspace int, role name, kind text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_owner();
    DELETE FROM nietz.member m
        WHERE m.workspace = dismiss.workspace AND m.role = dismiss.role AND m.kind = dismiss.kind;
END $$;

CREATE FUNCTION nietz.sign(workspace int, subject text, items jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_signer(workspace);
    INSERT INTO nietz.trust (workspace, subject, items) VALUES (sign.workspace, sign.subject, sign.items)
        ON CONFLICT ON CONSTRAINT trust_pkey
        DO UPDATE SET items = excluded.items, signed_by = session_user, at = now();
END $$;

CREATE FUNCTION nietz.revoke(workspace int, subject text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_signer(workspace);
    DELETE FROM nietz.trust t WHERE t.workspace = revoke.workspace AND t.subject = revoke.subject;
    RETURN FOUND;
END $$;

CREATE FUNCTION nietz.set_budget(workspace int, calls bigint, tokens bigint, cost numeric) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand_signer(workspace);
    INSERT INTO nietz.budget (workspace, calls, tokens, cost)
        VALUES (set_budget.workspace, set_budget.calls, set_budget.tokens, set_budget.cost)
        ON CONFLICT ON CONSTRAINT budget_pkey
        DO UPDATE SET calls = excluded.calls, tokens = excluded.tokens, cost = excluded.cost;
END $$;

-- Each policy asks once for a statement, not once for a row: a query in brackets is computed beforehand.
ALTER TABLE nietz.workspace ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.workspace FOR SELECT
    USING (id = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));
ALTER TABLE nietz.run ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.run FOR SELECT
    USING (workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));
ALTER TABLE nietz.line ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.line FOR SELECT
    USING (EXISTS (SELECT FROM nietz.run r WHERE r.id = line.run));
ALTER TABLE nietz.answer ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.answer FOR SELECT
    USING (EXISTS (SELECT FROM nietz.run r WHERE r.id = answer.run));
ALTER TABLE nietz.reserved ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.reserved FOR SELECT
    USING (EXISTS (SELECT FROM nietz.run r WHERE r.id = reserved.run));
ALTER TABLE nietz.document ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.document FOR SELECT USING (
    workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]) AND scope IN ('', session_user)
    OR workspace = ANY ((SELECT nietz.seen('{worker}'))::int[]));
ALTER TABLE nietz.document_row ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.document_row FOR SELECT USING (
    workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]) AND scope IN ('', session_user)
    OR workspace = ANY ((SELECT nietz.seen('{worker}'))::int[]));
ALTER TABLE nietz.member ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.member FOR SELECT
    USING (workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));
ALTER TABLE nietz.trust ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.trust FOR SELECT
    USING (workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));
ALTER TABLE nietz.budget ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.budget FOR SELECT
    USING (workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));
ALTER TABLE nietz.spent ENABLE ROW LEVEL SECURITY;
CREATE POLICY seen ON nietz.spent FOR SELECT
    USING (workspace = ANY ((SELECT nietz.seen('{asker,worker,reader}'))::int[]));

GRANT USAGE ON SCHEMA nietz TO nietz_asker, nietz_worker, nietz_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA nietz TO nietz_asker, nietz_worker, nietz_reader;
