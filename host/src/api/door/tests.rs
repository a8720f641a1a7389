use super::*;
use ironclaw_contract::operator::DenialCode;

const MAX: usize = 8;

fn places() -> Places {
    Places::new(Bounds { connections_max: MAX, keeps_one: true })
}

fn admission(places: &Places, seat: &Held) -> Admission {
    Admission { port: 0, seat: Arc::clone(seat), places: places.clone() }
}

fn full(places: &Places) -> Vec<Held> {
    (0..MAX).map(|_| places.try_take().expect("free")).collect()
}

fn token(n: usize) -> TokenId {
    format!("tok_{n:016x}").parse().expect("an id")
}

fn stands(seat: &Held) -> Standing {
    seat.standing.borrow().clone()
}

/// Admits each connection for a person of its own, with a request in flight.
fn all_asking(places: &Places, held: &[Held]) -> Vec<Asking> {
    let ask = |(n, seat): (usize, &Held)| {
        let admission = admission(places, seat);
        admission.admit(&token(n), PersonId::new()).expect("admitted");
        admission.ask()
    };
    held.iter().enumerate().map(ask).collect()
}

#[test]
fn new_connection_takes_the_place_of_the_oldest_stranger_first() {
    let places = places();
    let held = full(&places);
    admission(&places, &held[0]).admit(&token(0), PersonId::new()).expect("admitted");
    let newest = places.try_take().expect("the second makes room");
    assert!(matches!(stands(&held[0]), Standing::Admitted(..)));
    assert_eq!(stands(&held[1]), Standing::CutOff);
    assert!(held[2..].iter().chain([&newest]).all(|seat| stands(seat) == Standing::Stranger));
    admission(&places, &held[1]).admit(&token(1), PersonId::new()).expect("nothing is said");
    assert_eq!(stands(&held[1]), Standing::CutOff, "it is too late for that");
}

#[test]
fn the_longest_idle_connection_makes_room() {
    let places = places();
    let held = full(&places);
    let mut asking = all_asking(&places, &held);
    let kept = places.try_take().expect("the kept place");
    assert!(kept.is_kept.load(Ordering::SeqCst));
    drop(asking.remove(5));
    drop(asking.remove(2));
    let usual = places.try_take().expect("one is idle");
    assert!(!usual.is_kept.load(Ordering::SeqCst));
    assert_eq!((stands(&held[5]), stands(&kept)), (Standing::CutOff, Standing::Stranger), "idle before the third");
    assert!(matches!(stands(&held[2]), Standing::Admitted(..)));
    places.withdraw_unless(|_| false);
    places.try_take().expect("those whose token ended make room");
    assert_eq!(stands(&held[0]), Standing::CutOff, "also in the middle of an answer");
}

#[test]
fn kept_place_is_for_the_next_and_for_no_token() {
    let places = places();
    let held = full(&places);
    let mut asking = all_asking(&places, &held);
    let first = places.try_take().expect("the kept place");
    let second = places.try_take().expect("the kept place again");
    assert_eq!((stands(&first), stands(&second)), (Standing::CutOff, Standing::Stranger));
    let own = admission(&places, &second);
    assert_eq!(own.admit(&token(9), PersonId::new()).expect_err("it is kept").code, DenialCode::PortFull);
    drop(asking.remove(0));
    own.admit(&token(9), PersonId::new()).expect("an idle one made room");
    assert_eq!(stands(&held[0]), Standing::CutOff);
    let webhooks = Places::new(Bounds { connections_max: MAX, keeps_one: false });
    let held = full(&webhooks);
    let _asking = all_asking(&webhooks, &held);
    assert!(webhooks.try_take().is_none(), "where none is kept, the next waits");
}

#[test]
fn one_person_has_a_quarter_of_the_places() {
    let places = places();
    let (held, bob) = (full(&places), PersonId::new());
    let of_bob: Vec<Admission> = held.iter().map(|seat| admission(&places, seat)).collect();
    of_bob[0].admit(&token(0), bob).expect("the first");
    let asking = of_bob[0].ask();
    of_bob[1].admit(&token(0), bob).expect("the second");
    of_bob[2].admit(&token(1), bob).expect("an idle one goes, whatever its token");
    assert_eq!(stands(&held[1]), Standing::CutOff);
    let _also = of_bob[2].ask();
    assert_eq!(of_bob[3].admit(&token(0), bob).expect_err("none is idle").code, DenialCode::TooManyConnections);
    of_bob[4].admit(&token(4), PersonId::new()).expect("another person is not concerned");
    drop(asking);
    of_bob[3].admit(&token(0), bob).expect("one is idle again");
    assert_eq!(stands(&held[0]), Standing::CutOff);
}

#[test]
fn connection_that_is_being_answered_makes_no_room() {
    let places = places();
    let held = full(&places);
    assert!(admission(&places, &held[0]).answer());
    places.try_take().expect("the second makes room");
    assert_eq!((stands(&held[0]), stands(&held[1])), (Standing::Answered, Standing::CutOff));
    assert!(!admission(&places, &held[1]).answer(), "it is too late for that");
}
