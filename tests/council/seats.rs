//! Who sits in a council, and why.

use super::model::{Brain, stuck};
use super::table::{REQUEST, SMALL, Table, complaint, each, list, says};
use crate::support::env::Env;
use crate::support::model_server::{ModelServer, Response};

#[test]
fn the_request_is_classified_and_personas_are_chosen_with_a_reason_and_a_contrarian() {
    let table = Table::with(Brain::default());
    let ended = table.hold(&["--no-pause"], &[]);
    let session = ended.result();
    let chosen = &session["personaSelection"];
    assert_eq!(chosen["requestClassification"], "architecture");
    assert_eq!(
        each(list(&chosen["selectedPersonas"]), "name"),
        ["Senior Architect", "QA Engineer", "Devil's Advocate"]
    );
    assert_eq!(chosen["selectedPersonas"][2]["role"], "contrarian");
    assert!(
        chosen["reason"].as_str().expect("a text").contains("Senior Architect: knows where billing hurts;"),
        "{chosen}"
    );
    assert_eq!(chosen["userOverride"], false);
    says(&ended, &["- Senior Architect: knows where billing hurts", "- **B** Leave billing where it is"]);
    let offered = &table.prompts("Prepare a debate")[0];
    assert!(offered.prompt().matches("\n- ").count() >= 14, "{}", offered.prompt());
    assert!(!offered.prompt().contains("Moderator"), "who leads does not debate");
}

#[test]
fn named_personas_replace_the_choice_and_the_contrarian_stays() {
    let table = Table::with(Brain::default());
    let session =
        table.hold(&["--no-pause", "--personas", "security expert, tech-lead, Security Expert"], &[]).result();
    let chosen = &session["personaSelection"];
    assert_eq!(each(list(&chosen["selectedPersonas"]), "name"), ["Security Expert", "Tech Lead", "Devil's Advocate"]);
    assert_eq!(chosen["overriddenPersonas"], serde_json::json!(["Security Expert", "Tech Lead"]));
    assert_eq!(chosen["userOverride"], true);
    assert!(!table.prompts("Prepare a debate")[0].prompt().contains("Who could debate"), "the model is not asked");
}

/// Somebody who argues alone is no council, and would be refused when all was paid for.
#[test]
fn a_contrarian_whom_a_model_chose_alone_gets_others_to_argue_with() {
    let seats = vec!["Devil's Advocate", "Devil's Advocate"];
    for table in [Table::with, Table::large] {
        let table = table(Brain { seats: seats.clone(), stand: stuck, ..Brain::default() });
        let session = table.hold(&["--no-pause", "--cycles", "1"], &[]).result();
        let names = each(list(&session["personaSelection"]["selectedPersonas"]), "name");
        assert_eq!(names, ["Devil's Advocate", "Senior Architect", "Senior Developer", "Ops Architect"]);
        assert_eq!(session["status"], "completed");
    }
}

#[test]
fn an_unknown_name_is_an_error_with_the_nearest() {
    let table = Table::with(Brain::default());
    for (wish, hint) in [
        ("Securty Expert", "did you mean \"Security Expert\"?"),
        ("Tech Lead, architect", "Ops Architect"),
        ("Moderator", "Here are:"),
    ] {
        let ended = table.hold(&["--personas", wish], &[]).exits(2);
        assert!(
            complaint(&ended).contains("no council persona is called") && complaint(&ended).contains(hint),
            "{ended:?}"
        );
    }
    assert_eq!(table.server.calls(), 0);
}

#[test]
fn where_no_model_can_choose_the_words_of_the_request_do_and_that_is_said() {
    let brain = Brain::default();
    let server = ModelServer::start(move |request| {
        if request.body["messages"][1]["content"].as_str().unwrap_or_default().starts_with("Prepare a debate") {
            Response::text("I would rather not.")
        } else {
            brain.answer(request)
        }
    });
    let ended = Table::of(server).hold(&["--no-pause", "--cycles", "1"], &[]);
    let session = ended.result();
    says(
        &ended,
        &[
            "(Calling the council: the model's reply could not be used.)",
            "The request is taken as architecture, by its words",
        ],
    );
    assert!(each(list(&session["personaSelection"]["selectedPersonas"]), "name").contains(&"Senior Architect"));
    assert_eq!(session["metadata"]["errorCategories"][0]["code"], "reply-invalid");
}

#[test]
fn a_project_can_add_a_persona_of_its_own() {
    let persona =
        "---\nname: Billing Clerk\nsummary: Knows each exception by name\ntags: [council]\n---\nYou are the clerk.\n";
    let mut table = Table::with(Brain::default());
    table.env = table.env.file("personas/billing-clerk.md", persona);
    let session = table.hold(&["--no-pause", "--cycles", "1", "--personas", "Billing Clerk"], &[]).result();
    assert_eq!(session["personaSelection"]["selectedPersonas"][0]["name"], "Billing Clerk");
    assert_eq!(
        table.prompts("You sit in a council")[0].system().contains("clerk"),
        table.prompts("You sit in a council")[0].system().starts_with("You are the clerk")
    );
    let listed = Env::new().nietz(["run", "council", "personas"]).go().exits(0);
    assert!(listed.stdout.matches("- ").count() >= 14 || listed.stdout.lines().count() >= 14, "{}", listed.stdout);
}

#[test]
fn a_project_can_say_who_is_asked_about_what() {
    let brain = Brain::default();
    let server = ModelServer::start(move |request| {
        if request.body["messages"][1]["content"].as_str().unwrap_or_default().starts_with("Prepare a debate") {
            Response::text("I would rather not.")
        } else {
            brain.answer(request)
        }
    });
    let route = "words: [split, billing, service, quarter]\npersonas: [financial-officer, product-owner]\n";
    let env = Env::with(&server).file("flows/council/routes/accounts.yaml", route);
    let ended = env.run_on(SMALL, ["council", REQUEST, "--no-pause", "--cycles", "1", "--clarify", "never"]).go();
    says(&ended, &["The request is taken as accounts, by its words"]);
    let session = ended.result();
    assert!(each(list(&session["personaSelection"]["selectedPersonas"]), "name").contains(&"Financial Officer"));
    env.nietz(["check", "flows/council/routes/accounts.yaml"]).go().exits(0);
    env.write("flows/council/routes/accounts.yaml", "words: [split]\npersona: [financial-officer]\n");
    let ended = env.nietz(["check", "flows/council/routes/accounts.yaml"]).go().exits(4);
    assert!(ended.stdout.contains("accounts.yaml:2:1"), "{ended:?}");
}
