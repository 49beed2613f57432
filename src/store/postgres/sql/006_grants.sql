-- Nobody may call anything but what is named here; each function asks for the workspace by itself.

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA nietz FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    nietz.workspace, nietz.owns, nietz.may, nietz.seen, nietz.demand, nietz.state, nietz.lines, nietz.answers, nietz.queue_metrics
    TO nietz_asker, nietz_worker, nietz_reader;
GRANT EXECUTE ON FUNCTION nietz.sign, nietz.revoke, nietz.set_budget TO nietz_asker, nietz_reader;
GRANT EXECUTE ON FUNCTION
    nietz.answer, nietz.cancel, nietz.requeue, nietz.keep, nietz.remove, nietz.prune TO nietz_asker;
GRANT EXECUTE ON FUNCTION
    nietz.take, nietz.hold, nietz.beat, nietz.append, nietz.park, nietz.finish, nietz.release, nietz.asked, nietz.refuse
    TO nietz_worker;
GRANT EXECUTE ON FUNCTION nietz.enqueue, nietz.save_document, nietz.remove_document, nietz.append_row TO nietz_asker, nietz_worker;
