//! Checks of the network, without asking anybody: whom nietz trusts, and by which proxies it goes.

use crate::cli::doctor::{CheckOutcome, CheckState, DoctorArgs, finding};
use crate::error::Result;
use crate::host::network::Network;
use crate::run::machine::Machine;

/// Says which authorities may have signed a server's certificate.
pub(super) fn authorities(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let facts = Network::from_environment(&machine.environment)?.facts();
    let named: Vec<String> = facts.named.iter().map(|(variable, place)| format!("{variable}={place}")).collect();
    let whose =
        if named.is_empty() { "of the system".to_owned() } else { format!("of the system and {}", named.join(", ")) };
    let found = format!("{} authorities are built in, and {} {whose} are added", facts.built_in, facts.added);
    Ok(vec![match facts.unread.is_empty() {
        true => finding("ca", CheckState::Ok, found),
        false => finding("ca", CheckState::Weak, format!("{found}; not read: {}", facts.unread.join("; ")))
            .hint("SSL_CERT_FILE names a file of PEM certificates, SSL_CERT_DIR folders of them"),
    }])
}

/// Says by which proxies nietz goes, and where it goes by none.
pub(super) fn proxies(machine: &Machine, _: &DoctorArgs) -> Result<Vec<CheckOutcome>> {
    let facts = Network::from_environment(&machine.environment)?.facts();
    if facts.proxies.is_empty() {
        return Ok(vec![finding(
            "proxy",
            CheckState::Ok,
            "none: neither HTTPS_PROXY, HTTP_PROXY nor ALL_PROXY is set",
        )]);
    }
    let told = |(variable, address): &(String, String)| {
        let what = match variable.to_ascii_uppercase().as_str() {
            "HTTPS_PROXY" => "for https",
            "HTTP_PROXY" => "for http",
            _ => "for all else",
        };
        format!("{address} {what} ({variable})")
    };
    let proxies: Vec<String> = facts.proxies.iter().map(told).collect();
    let without = match &facts.exceptions {
        Some((variable, hosts)) => format!("this machine and {hosts} ({variable})"),
        None => "this machine".to_owned(),
    };
    Ok(vec![finding("proxy", CheckState::Ok, format!("{}; without one: {without}", proxies.join(", ")))])
}
