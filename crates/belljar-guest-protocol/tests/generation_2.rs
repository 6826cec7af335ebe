//! The bytes of generation 2: what programs inside ask of the host. They never change, as those of [generation 1](generation_1.rs).

use belljar_guest_protocol::wire::{AnswerWish, WishBody};
use belljar_guest_protocol::{Verb, encode};
use belljar_types::hex;

#[test]
fn verbs() {
    let verbs: Vec<String> = Verb::ALL.iter().filter(|verb| verb.since() == 2).map(|verb| format!("{}:{verb:?}", verb.number())).collect();
    assert_eq!(verbs.join(" "), "27:Wishes 28:AnswerWish");
}

#[test]
fn bodies() {
    let wish = WishBody {
        id: [7; 16].into(),
        path: b"/out".to_vec().into(),
        user: "user".to_owned(),
        name: Some("a".to_owned()),
        media_type: None,
    };
    let id = "07".repeat(16);
    assert_eq!(hex(&encode(&wish)), format!("8450{id}442f6f757464757365726161"));
    let answer = AnswerWish { id: [7; 16].into(), artifact: None, refusal: Some("no".to_owned()) };
    assert_eq!(hex(&encode(&answer)), format!("8350{id}f6626e6f"));
}
