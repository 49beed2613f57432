-- Documents: saved only over what the writer has read, and rows that only grow.

-- Who may write in a scope: workers everywhere, who asks in what is shared and in what is theirs.
CREATE FUNCTION nietz.demand_scope(workspace int, scope text) RETURNS void
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM nietz.demand(workspace, '{asker,worker}');
    IF scope NOT IN ('', session_user) THEN
        PERFORM nietz.demand(workspace, '{worker}');
    END IF;
END $$;

-- `expected` is the digest of what is there, null where nothing is. `again` says that this save may have been made before: then the
-- same text that is there already is this one's; else two that save the same are two, and the second is told.
CREATE FUNCTION nietz.save_document(
    workspace int, scope text, path text, body bytea, digest text, expected text, run bigint DEFAULT NULL,
    again boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there text;
    written bigint;
BEGIN
    PERFORM nietz.demand_scope(workspace, scope);
    SELECT d.digest INTO there FROM nietz.document d
        WHERE d.workspace = save_document.workspace AND d.scope = save_document.scope AND d.path = save_document.path FOR UPDATE;
    IF again AND there = digest THEN
        RETURN;
    END IF;
    IF there IS NULL AND expected IS NULL THEN
        INSERT INTO nietz.document (workspace, scope, path, body, digest, length, run)
            VALUES (save_document.workspace, save_document.scope, save_document.path, save_document.body,
                save_document.digest, octet_length(save_document.body), save_document.run)
            ON CONFLICT ON CONSTRAINT document_pkey DO NOTHING;
        GET DIAGNOSTICS written = ROW_COUNT;
        IF written = 1 THEN
            RETURN;
        END IF;
        -- Somebody else saved at the same moment.
        SELECT d.digest INTO there FROM nietz.document d
            WHERE d.workspace = save_document.workspace AND d.scope = save_document.scope AND d.path = save_document.path;
        IF again AND there = digest THEN
            RETURN;
        END IF;
        -- It may have been removed again since.
        IF there IS NULL THEN
            RAISE EXCEPTION 'somebody else changes %', path USING ERRCODE = 'NZ004', DETAIL = '';
        END IF;
    END IF;
    IF there IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'somebody else has changed %', path USING ERRCODE = 'NZ004', DETAIL = coalesce(there, '');
    END IF;
    UPDATE nietz.document d SET body = save_document.body, digest = save_document.digest,
        length = octet_length(save_document.body), run = save_document.run, who = session_user, at = now()
        WHERE d.workspace = save_document.workspace AND d.scope = save_document.scope AND d.path = save_document.path;
END $$;

CREATE FUNCTION nietz.remove_document(workspace int, scope text, path text, expected text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    there text;
BEGIN
    PERFORM nietz.demand_scope(workspace, scope);
    SELECT d.digest INTO there FROM nietz.document d
        WHERE d.workspace = remove_document.workspace AND d.scope = remove_document.scope AND d.path = remove_document.path
        FOR UPDATE;
    IF there IS NULL THEN
        RETURN false;
    ELSIF there IS DISTINCT FROM expected THEN
        RAISE EXCEPTION 'somebody else has changed %', path USING ERRCODE = 'NZ004', DETAIL = there;
    END IF;
    DELETE FROM nietz.document d WHERE d.workspace = remove_document.workspace AND d.scope = remove_document.scope
        AND d.path = remove_document.path;
    RETURN true;
END $$;

-- Returns the byte at which the row starts. With `from_at` this is a second try: the same row there or behind it is the first one's.
CREATE FUNCTION nietz.append_row(
    workspace int, scope text, path text, "row" text, from_at bigint DEFAULT NULL, run bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    held nietz.document;
    earlier bigint;
BEGIN
    PERFORM nietz.demand_scope(workspace, scope);
    INSERT INTO nietz.document (workspace, scope, path, digest, length, run)
        VALUES (append_row.workspace, append_row.scope, append_row.path, '', 0, append_row.run)
        ON CONFLICT ON CONSTRAINT document_pkey DO NOTHING;
    SELECT d.* INTO held FROM nietz.document d
        WHERE d.workspace = append_row.workspace AND d.scope = append_row.scope AND d.path = append_row.path FOR UPDATE;
    IF held.body IS NOT NULL THEN
        RAISE EXCEPTION '% is a document and has no rows', path USING ERRCODE = 'NZ011';
    END IF;
    IF from_at IS NOT NULL THEN
        SELECT r.at INTO earlier FROM nietz.document_row r
            WHERE r.workspace = append_row.workspace AND r.scope = append_row.scope AND r.path = append_row.path
                AND r.at >= from_at AND r.body = append_row."row" ORDER BY r.at LIMIT 1;
        IF earlier IS NOT NULL THEN
            RETURN earlier;
        ELSIF from_at > held.length THEN
            RAISE EXCEPTION '% is shorter than it was: it held % bytes, now %', path, from_at, held.length USING ERRCODE = 'NZ012';
        END IF;
    END IF;
    INSERT INTO nietz.document_row (workspace, scope, path, at, body, run)
        VALUES (append_row.workspace, append_row.scope, append_row.path, held.length, append_row."row", append_row.run);
    UPDATE nietz.document d SET length = held.length + octet_length(append_row."row") + 1, who = session_user, at = now(), run = append_row.run
        WHERE d.workspace = append_row.workspace AND d.scope = append_row.scope AND d.path = append_row.path;
    RETURN held.length;
END $$;
