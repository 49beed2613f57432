//! The promise: a child ends with its parent, and a parent that waits goes on when its child is over, whichever comes first.

use std::sync::Barrier;

use super::{held, messages, status, take};
use crate::support::postgres::{self, Session};

fn child(session: &mut Session, name: &str, parent: &(String, String)) -> Result<String, String> {
    let (run, claim) = parent;
    let call = format!(
        "SELECT run FROM nietz.enqueue(1, '{name}', 'f', '{{open}}', '{{}}', parent => {run}, parent_claim => {claim})"
    );
    session.say(&call)
}

#[test]
fn a_parent_goes_on_when_its_child_is_over() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let parent = held(&mut session, "p");
    let one = child(&mut session, "c", &parent).expect("it is its own");
    let (run, claim) = &parent;
    let park = |seq: u32, claim: &str| {
        format!("SELECT nietz.park({run}, {claim}, {seq}, '{{wait}}', '[]', '{{}}', awaits => '{{{one}}}')")
    };
    assert_eq!(session.get(&park(2, claim)), "t");
    assert_eq!(status(&mut session, run), "waiting");
    let (taken, own) = take(&mut session, "w2").expect("the child is due");
    assert_eq!(taken, one);
    session.get(&format!("SELECT nietz.finish({one}, {own}, 2, '{{end}}', 'failed', '{{}}')"));
    let (again, claim) = take(&mut session, "w1").expect("the parent goes on");
    assert_eq!(&again, run);
    assert_eq!(session.get(&park(3, &claim)), "f", "a child that is over is not waited for");
    let stale = (run.clone(), parent.1.clone());
    assert_eq!(child(&mut session, "d", &stale), Err("NZ001".to_owned()), "a stale worker begins none");
}

#[test]
fn a_child_that_ends_while_its_parent_parks_wakes_it() {
    let Some(database) = postgres::database() else { return };
    let mut owner = database.session();
    for round in 0..60 {
        let parent = held(&mut owner, &format!("p{round}"));
        let one = child(&mut owner, &format!("c{round}"), &parent).expect("it is its own");
        let (taken, own) = take(&mut owner, "w2").expect("the child is due");
        assert_eq!(taken, one);
        let both = Barrier::new(2);
        let parked = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut session = database.session();
                both.wait();
                session.get(&format!("SELECT nietz.finish({one}, {own}, 2, '{{end}}', 'done', '{{}}')"));
            });
            let mut session = database.session();
            both.wait();
            let (run, claim) = &parent;
            session
                .get(&format!("SELECT nietz.park({run}, {claim}, 2, '{{wait}}', '[]', '{{}}', awaits => '{{{one}}}')"))
        });
        let now = status(&mut owner, &parent.0);
        assert_eq!(now, if parked == "t" { "queued" } else { "running" }, "round {round}");
        owner.get(&format!("SELECT nietz.cancel({})", parent.0));
    }
}

#[test]
fn cancelling_a_parent_cancels_all_below_it() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    let parent = held(&mut session, "p");
    child(&mut session, "c1", &parent).expect("it is its own");
    child(&mut session, "c2", &parent).expect("it is its own");
    let first = take(&mut session, "w2").expect("a child is due");
    let below = child(&mut session, "c11", &first).expect("a child may have its own");
    assert_eq!(session.get(&format!("SELECT nietz.cancel({})", parent.0)), "running");
    assert_eq!(session.get("SELECT string_agg(DISTINCT status, ',') FROM nietz.run"), "cancelled");
    assert_eq!(messages(&mut session), "0");
    let (run, claim) = first;
    assert_eq!(session.say(&format!("SELECT nietz.append({run}, {claim}, 2, '{{x}}')")), Err("NZ002".to_owned()));
    assert_eq!(child(&mut session, "c3", &parent), Err("NZ002".to_owned()), "{below}");
}

#[test]
fn a_parent_that_is_done_needs_nothing_of_its_children_any_more() {
    let Some(database) = postgres::database() else { return };
    let mut session = database.session();
    for (name, ends, left) in [("p", "done", "cancelled"), ("q", "failed", "queued")] {
        let parent = held(&mut session, name);
        let one = child(&mut session, &format!("{name}1"), &parent).expect("it is its own");
        let (run, claim) = &parent;
        session.get(&format!("SELECT nietz.finish({run}, {claim}, 2, '{{end}}', '{ends}', '{{}}')"));
        assert_eq!((status(&mut session, run).as_str(), status(&mut session, &one).as_str()), (ends, left));
    }
    assert_eq!(messages(&mut session), "1", "that of the child whose parent may go on");
}
