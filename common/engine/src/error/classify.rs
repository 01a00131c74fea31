//! Classifies refusals of the API server.

mod causes;

use kube::core::Status;

use common::api::names;
use common::entrance;
use common::foreign::ForeignText;

use super::super::request::ApiCall;
use super::EngineError;

/// Maximum length of text from a response that is not a Status (a proxy's page) in an error.
const LONGEST_TEXT: usize = 200;

/// Returns the error for an unsuccessful response.
pub(crate) fn from_response(call: &ApiCall, server: &str, code: u16, body: &[u8]) -> EngineError {
    match entrance::from_slice::<Status>(body) {
        Ok(status) => from_status(call, server, code, Some(&status), &status.message),
        Err(_) => {
            let text = String::from_utf8_lossy(body);
            let text: String = text.trim().chars().take(LONGEST_TEXT).collect();
            from_status(call, server, code, None, &text)
        }
    }
}

/// Returns the error for a watch that cannot be opened, or for an event in it.
pub(crate) fn watch_error(call: &ApiCall, server: &str, error: kube::Error) -> EngineError {
    match error {
        kube::Error::Api(status) => {
            from_status(call, server, status.code, Some(&status), &status.message)
        }
        other => EngineError::Unreachable {
            server: server.to_owned(),
            source: Box::new(other),
        },
    }
}

fn from_status(
    call: &ApiCall,
    server: &str,
    code: u16,
    status: Option<&Status>,
    message: &str,
) -> EngineError {
    let message = String::from(ForeignText::new(message));
    // A webhook that cannot decide now says nothing about the object.
    if is_denial(&message) && code != 429 {
        return EngineError::Denied {
            object: call.object.clone(),
            message,
        };
    }
    match code {
        401 => EngineError::Unauthorized {
            server: server.to_owned(),
        },
        403 if status.is_some() && !is_rbac(&message) => EngineError::Denied {
            object: call.object.clone(),
            message,
        },
        // Whatever was requested, the right to impersonate is missing.
        403 if message.contains(" cannot impersonate") => EngineError::Forbidden {
            verb: "impersonate",
            resource: "serviceaccounts".to_owned(),
            message,
        },
        403 => EngineError::Forbidden {
            verb: call.verb,
            resource: call.resource.clone(),
            message,
        },
        409 if !causes::conflicts(status).is_empty() => EngineError::FieldConflict {
            object: call.object.clone(),
            causes: causes::conflicts(status),
        },
        422 if !causes::immutable(status).is_empty() => EngineError::Immutable {
            object: call.object.clone(),
            causes: causes::immutable(status),
        },
        422 if !causes::invalid(status).is_empty() => EngineError::Invalid {
            object: call.object.clone(),
            causes: causes::invalid(status),
        },
        404 if !names_an_object(status) && is_ours(call.uri()) => EngineError::NotInitialised,
        404 if !names_an_object(status) => EngineError::Unserved {
            what: call.object.clone(),
            message: format!("not served in this version: {message}"),
        },
        _ => EngineError::Api {
            what: call.object.clone(),
            message,
            code,
        },
    }
}

/// Returns whether a message comes from admission. Webhooks answer with any code, policies with 422; the API server's words around their
/// messages are fixed.
fn is_denial(message: &str) -> bool {
    (message.contains("admission webhook \"") && message.contains("denied the request"))
        || (message.contains("ValidatingAdmissionPolicy '") && message.contains("denied request"))
}

/// Returns whether a 403 comes from RBAC: `… is forbidden: User "bob" cannot patch resource "deployments" …`. Others come from built-in
/// admission (quota, Pod Security).
fn is_rbac(message: &str) -> bool {
    message.contains("User \"") && message.contains(" cannot ")
        || message.contains("is attempting to grant RBAC permissions")
}

fn is_ours(uri: &str) -> bool {
    uri.strip_prefix("/apis/")
        .is_some_and(|rest| rest.starts_with(names::GROUP))
}

/// Returns whether a 404 names a missing object. A resource that is not served is plain text, or a Status without a name.
fn names_an_object(status: Option<&Status>) -> bool {
    status
        .and_then(|status| status.details.as_ref())
        .is_some_and(|details| !details.name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::super::address::Collection;
    use super::*;

    fn classified(code: u16, body: &str) -> EngineError {
        let collection = Collection::from_names(
            names::API_VERSION,
            "AddonInstallation",
            "addoninstallations",
            Some("a"),
        );
        from_response(
            &ApiCall::get(&collection, "b", "application/json"),
            "https://c",
            code,
            body.as_bytes(),
        )
    }

    fn status(code: u16, reason: &str, message: &str, details: &str) -> EngineError {
        classified(
            code,
            &format!(
                r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","message":{message:?},"reason":"{reason}","details":{details},"code":{code}}}"#
            ),
        )
    }

    #[test]
    fn refusals_are_distinguished() {
        let rbac = r#"addoninstallations.kubectl-addons.dev "b" is forbidden: User "eve" cannot get resource "addoninstallations" in API group "kubectl-addons.dev" in the namespace "a""#;
        assert!(matches!(
            status(403, "Forbidden", rbac, "{}"),
            EngineError::Forbidden { verb: "get", .. }
        ));
        let acting = r#"serviceaccounts "b" is forbidden: User "eve" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "a""#;
        assert!(matches!(
            status(403, "Forbidden", acting, "{}"),
            EngineError::Forbidden {
                verb: "impersonate",
                ..
            }
        ));
        for (code, message) in [
            (
                403,
                r#"admission webhook "validate.kubectl-addons.dev" denied the request: core"#,
            ),
            (400, r#"admission webhook "x" denied the request: no"#),
            (
                422,
                "configmaps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            ),
            (403, "pods \"x\" is forbidden: exceeded quota: q"),
        ] {
            assert!(
                matches!(
                    status(code, "Forbidden", message, "{}"),
                    EngineError::Denied { .. }
                ),
                "{message}"
            );
        }
        assert!(matches!(
            classified(401, "Unauthorized"),
            EngineError::Unauthorized { .. }
        ));
        assert!(matches!(
            classified(404, "404 page not found\n"),
            EngineError::NotInitialised
        ));
        assert!(matches!(
            status(
                404,
                "NotFound",
                "the server could not find the requested resource",
                "{}"
            ),
            EngineError::NotInitialised
        ));
        assert!(
            status(
                404,
                "NotFound",
                "addoninstallations \"b\" not found",
                r#"{"name":"b","kind":"addoninstallations"}"#
            )
            .is_not_found()
        );
    }

    /// The answer for a version that is not served names no object: it says nothing of any.
    #[test]
    fn an_object_that_is_missing_is_told_from_a_version_that_is_not_served() {
        let tills = Collection::from_names("shop.example/v1beta1", "Till", "tills", Some("shop"));
        let call = ApiCall::get(&tills, "a", "application/json");
        let unnamed = r#"{"kind":"Status","code":404,"message":"the server could not find the requested resource"}"#;
        let named = r#"{"kind":"Status","code":404,"message":"tills \"a\" not found","details":{"name":"a"}}"#;
        for (body, is_not_found) in [
            ("404 page not found\n", false),
            ("<html>no such host</html>", false),
            (unnamed, false),
            (named, true),
        ] {
            let error = from_response(&call, "https://c", 404, body.as_bytes());
            assert_eq!(error.is_not_found(), is_not_found, "{body}");
            assert_eq!(error.is_unserved(), !is_not_found, "{body}");
            assert_eq!(error.code(), Some(404), "{body}");
        }
    }

    #[test]
    fn a_webhook_that_cannot_judge_now_denies_nothing() {
        let message = r#"admission webhook "x" denied the request: the webhook has heard nothing of a for 91 s"#;
        let error = status(429, "TooManyRequests", message, "{}");
        assert!(
            matches!(error, EngineError::Api { code: 429, .. }),
            "{error:?}"
        );
    }

    #[test]
    fn a_field_conflict_names_field_and_manager() {
        let details = r#"{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"kubectl-edit\" using apps/v1","field":".spec.replicas"}]}"#;
        let error = status(409, "Conflict", "Apply failed with 1 conflict", details);
        assert_eq!(
            error.to_string(),
            "a/AddonInstallation b: spec.replicas: conflict with \"kubectl-edit\" using apps/v1"
        );
        assert!(error.is_conflict());
    }
}
