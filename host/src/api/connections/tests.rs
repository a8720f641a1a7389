use super::*;
use ironclaw_operator::DenialCode;

const MAX: usize = 8;

fn connections() -> Connections {
    Connections::new(Bounds { connections_max: MAX, reserves_one: true })
}

fn handle(connections: &Connections, connection: &SharedConnection) -> ConnectionHandle {
    ConnectionHandle { port: 0, connection: Arc::clone(connection), connections: connections.clone() }
}

fn full(connections: &Connections) -> Vec<SharedConnection> {
    (0..MAX).map(|_| connections.try_add().expect("free")).collect()
}

fn token(n: usize) -> TokenId {
    format!("tok_{n:016x}").parse().expect("an id")
}

fn state_of(connection: &SharedConnection) -> ConnectionState {
    connection.state.borrow().clone()
}

/// Admits each connection for a person of its own, with a request in flight.
fn all_busy(connections: &Connections, open: &[SharedConnection]) -> Vec<RequestInFlight> {
    let begin = |(n, connection): (usize, &SharedConnection)| {
        let handle = handle(connections, connection);
        handle.admit(&token(n), PersonId::new()).expect("admitted");
        handle.begin_request()
    };
    open.iter().enumerate().map(begin).collect()
}

#[test]
fn new_connection_takes_the_place_of_the_oldest_stranger_first() {
    let connections = connections();
    let open = full(&connections);
    handle(&connections, &open[0]).admit(&token(0), PersonId::new()).expect("admitted");
    let newest = connections.try_add().expect("the second makes room");
    assert!(matches!(state_of(&open[0]), ConnectionState::Authenticated(..)));
    assert_eq!(state_of(&open[1]), ConnectionState::CutOff);
    assert!(
        open[2..].iter().chain([&newest]).all(|connection| state_of(connection) == ConnectionState::Unauthenticated)
    );
    handle(&connections, &open[1]).admit(&token(1), PersonId::new()).expect("no refusal");
    assert_eq!(state_of(&open[1]), ConnectionState::CutOff, "too late");
}

#[test]
fn the_longest_idle_connection_makes_room() {
    let connections = connections();
    let open = full(&connections);
    let mut busy = all_busy(&connections, &open);
    let reserved = connections.try_add().expect("the reserved one");
    assert!(reserved.is_reserved.load(Ordering::SeqCst));
    drop(busy.remove(5));
    drop(busy.remove(2));
    let usual = connections.try_add().expect("one is idle");
    assert!(!usual.is_reserved.load(Ordering::SeqCst));
    assert_eq!(
        (state_of(&open[5]), state_of(&reserved)),
        (ConnectionState::CutOff, ConnectionState::Unauthenticated),
        "idle before the third"
    );
    assert!(matches!(state_of(&open[2]), ConnectionState::Authenticated(..)));
    connections.withdraw_unless(|_| false);
    connections.try_add().expect("those whose token ended make room");
    assert_eq!(state_of(&open[0]), ConnectionState::CutOff, "also in the middle of an answer");
}

#[test]
fn reserved_connection_is_replaced_and_refuses_tokens() {
    let connections = connections();
    let open = full(&connections);
    let mut busy = all_busy(&connections, &open);
    let first = connections.try_add().expect("the reserved one");
    let second = connections.try_add().expect("the reserved one again");
    assert_eq!((state_of(&first), state_of(&second)), (ConnectionState::CutOff, ConnectionState::Unauthenticated));
    let own = handle(&connections, &second);
    assert_eq!(own.admit(&token(9), PersonId::new()).expect_err("it is reserved").code, DenialCode::PortFull);
    drop(busy.remove(0));
    own.admit(&token(9), PersonId::new()).expect("an idle one made room");
    assert_eq!(state_of(&open[0]), ConnectionState::CutOff);
    let webhooks = Connections::new(Bounds { connections_max: MAX, reserves_one: false });
    let open = full(&webhooks);
    let _busy = all_busy(&webhooks, &open);
    assert!(webhooks.try_add().is_none(), "without a reserved one, the next waits");
}

#[test]
fn one_person_has_a_quarter_of_the_connections() {
    let connections = connections();
    let (open, bob) = (full(&connections), PersonId::new());
    let of_bob: Vec<ConnectionHandle> = open.iter().map(|connection| handle(&connections, connection)).collect();
    of_bob[0].admit(&token(0), bob).expect("the first");
    let busy = of_bob[0].begin_request();
    of_bob[1].admit(&token(0), bob).expect("the second");
    of_bob[2].admit(&token(1), bob).expect("an idle one goes, whatever its token");
    assert_eq!(state_of(&open[1]), ConnectionState::CutOff);
    let _also = of_bob[2].begin_request();
    assert_eq!(of_bob[3].admit(&token(0), bob).expect_err("none is idle").code, DenialCode::TooManyConnections);
    of_bob[4].admit(&token(4), PersonId::new()).expect("another person has an own share");
    drop(busy);
    of_bob[3].admit(&token(0), bob).expect("one is idle again");
    assert_eq!(state_of(&open[0]), ConnectionState::CutOff);
}

#[test]
fn connection_that_is_being_answered_makes_no_room() {
    let connections = connections();
    let open = full(&connections);
    assert!(handle(&connections, &open[0]).begin_answer());
    connections.try_add().expect("the second makes room");
    assert_eq!((state_of(&open[0]), state_of(&open[1])), (ConnectionState::Answering, ConnectionState::CutOff));
    assert!(!handle(&connections, &open[1]).begin_answer(), "too late");
}
