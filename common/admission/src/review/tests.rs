//! The wire format that the API server requires of a response.

use json_patch::{AddOperation, Patch, PatchOperation};
use serde_json::{Value, json};

use super::*;
use crate::verdict::{AdmissionProblem, Verdict};

fn review(uid: Value) -> Vec<u8> {
    let review = json!({"apiVersion": API_VERSION, "kind": KIND, "request": {
        "uid": uid, "operation": "DELETE", "name": "",
        "kind": {"group": "g", "version": "v1", "kind": "K"},
        "resource": {"group": "g", "version": "v1", "resource": "ks"},
        "userInfo": {"username": "jane", "groups": ["a", "b"], "extra": {"x": ["y"]}},
        "object": null, "oldObject": {"a": 1}, "dryRun": true, "options": {},
    }});
    serde_json::to_vec(&review).unwrap()
}

fn json_of(response: &Response) -> Value {
    serde_json::to_value(response).unwrap()
}

#[test]
fn a_request_is_read() {
    let bytes = review(json!("u-\u{e9}-\"1"));
    let request = ReviewRequest::from_slice(&bytes).unwrap();
    assert_eq!(request.uid, "u-\u{e9}-\"1");
    assert_eq!(request.operation, AdmissionOperation::Delete);
    assert_eq!(request.requester().groups, ["a", "b"]);
    assert!(request.object.is_none_or(|object| object.get() == "null"));
    assert_eq!(request.old_object.unwrap().get(), r#"{"a":1}"#);
}

#[test]
fn what_cannot_be_read_is_answered_with_the_uid_where_there_is_one() {
    for (body, uid) in [
        (&b""[..], None),
        (b"null", None),
        (b"[]", None),
        (b"{", None),
        (b"\xff\xfe", None),
        (br#"{"request": {}}"#, None),
        (br#"{"request": {"uid": 7}}"#, None),
        (br#"{"request": {"uid": ""}}"#, None),
        (br#"{"request": {"uid": "u"}}"#, Some("u")),
        (
            br#"{"request": {"uid": "u", "operation": "SECRET-hunter2"}}"#,
            Some("u"),
        ),
    ] {
        let error = ReviewRequest::from_slice(body).unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        let found = match &error {
            ReviewError::Unreadable { uid, .. } => Some(uid.as_str()),
            ReviewError::NoReview { .. } => None,
        };
        assert_eq!(found, uid, "{error}");
    }
    assert!(ReviewRequest::from_slice(&review(json!(""))).is_err());
    let deep = [b"{\"request\":".repeat(100_000), b"1".to_vec()].concat();
    assert!(ReviewRequest::from_slice(&deep).is_err());
}

#[test]
fn a_patch_is_base64_and_comes_with_its_type_or_not_at_all() {
    let patch = Patch(vec![PatchOperation::Add(AddOperation {
        path: json_patch::jsonptr::PointerBuf::from_tokens(["a/b"]),
        value: json!(1),
    })]);
    assert_eq!(
        json_of(&Response::patched("u", &patch).unwrap()),
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
            "uid": "u", "allowed": true, "patchType": "JSONPatch",
            // [{"op":"add","path":"/a~1b","value":1}]
            "patch": "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2F+MWIiLCJ2YWx1ZSI6MX1d",
        }})
    );
    assert_eq!(
        json_of(&Response::patched("u", &Patch::default()).unwrap())["response"],
        json!({"uid": "u", "allowed": true})
    );
}

#[test]
fn a_denial_has_code_reason_and_all_problems_in_its_message() {
    let bytes = review(json!("u"));
    let request = ReviewRequest::from_slice(&bytes).unwrap();
    let judged = |problems: Vec<AdmissionProblem>| {
        let verdict = Verdict {
            problems,
            ..Verdict::default()
        };
        json_of(&Response::from_verdict(&request, &verdict))["response"].clone()
    };
    assert_eq!(judged(vec![]), json!({"uid": "u", "allowed": true}));
    assert_eq!(
        judged(vec![AdmissionProblem::forbidden("r", "spec.a", "not\nyou")]),
        json!({"uid": "u", "allowed": false, "status": {
            "status": "Failure", "code": 403, "reason": "Forbidden", "message": "spec.a: not you"}})
    );
    assert_eq!(
        judged(vec![
            AdmissionProblem::invalid("r", "spec.a", "x"),
            AdmissionProblem::invalid("r", "", "y")
        ]),
        json!({"uid": "u", "allowed": false, "status": {
            "status": "Failure", "code": 422, "reason": "Invalid", "message": "2 problems: spec.a: x; y"}})
    );
}

#[test]
fn warnings_are_cut_as_the_api_server_cuts_them_and_break_glass_is_audited() {
    let bytes = review(json!("u"));
    let request = ReviewRequest::from_slice(&bytes).unwrap();
    let verdict = Verdict {
        warnings: std::iter::repeat_n("ä\t".repeat(400), 20).collect(),
        lifted: vec![AdmissionProblem::forbidden("core-deletion", "", "x")],
        ..Verdict::default()
    };
    let response = json_of(&Response::from_verdict(&request, &verdict));
    let warnings = response["response"]["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 16);
    for warning in warnings {
        let text = warning.as_str().unwrap();
        assert_eq!(text.chars().count(), 256);
        assert!(!text.contains('\t'));
    }
    assert_eq!(
        response["response"]["auditAnnotations"],
        json!({"break-glass": "core-deletion"})
    );
}
