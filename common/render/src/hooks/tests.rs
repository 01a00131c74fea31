use serde_json::json;

use super::*;

fn manifest(kind: &str, hook: &str, policy: &str) -> Manifest {
    let mut annotations = json!({});
    if !hook.is_empty() {
        annotations[HOOK] = hook.into();
    }
    if !policy.is_empty() {
        annotations[DELETE_POLICY] = policy.into();
    }
    let api_version = if kind == "Job" { "batch/v1" } else { "v1" };
    let mut object = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "annotations": annotations},
    });
    if kind == "Job" {
        object["spec"] = json!({"template": {"spec": {}}});
    }
    let place = FilePosition {
        file: "chart".to_owned(),
        line: 3,
        column: 0,
    };
    let object = Arc::new(object);
    Manifest { object, place }
}

/// The remaining object, and the warnings.
fn one(kind: &str, hook: &str, policy: &str, occasion: Occasion) -> (Option<Arc<Value>>, String) {
    let kept = select_for_occasion(vec![manifest(kind, hook, policy)], occasion, Method::Helm);
    let mut left = kept.manifests.into_iter().map(|manifest| manifest.object);
    (left.next(), said(&kept.left_out))
}

fn said(left_out: &[OmittedObject]) -> String {
    let said: Vec<String> = left_out.iter().map(ToString::to_string).collect();
    said.join("\n")
}

#[test]
fn hooks_of_other_occasions_are_left_out() {
    let none = "";
    let leaving = "chart:3: Job x is left out: it is a hook of pre-delete, which only runs with template.helm.mode: release";
    let mixed = "chart:3: Job x is left out: it is a hook of post-delete, which only runs with template.helm.mode: release";
    let unknown =
        "chart:3: Job x is left out: \"pre-isntall\" is not a hook of Helm, which ignores it, too";
    for (hook, install, upgrade, warning) in [
        ("", true, true, none),
        ("crd-install", true, true, none),
        ("pre-install", true, false, none),
        ("Post-Install", true, false, none),
        ("pre-upgrade", false, true, none),
        ("post-upgrade", false, true, none),
        ("pre-install, pre-upgrade", true, true, none),
        ("pre-install,post-delete", true, false, mixed),
        ("test", false, false, none),
        ("test-success", false, false, none),
        ("pre-delete", false, false, leaving),
        ("pre-install,pre-isntall", false, false, unknown),
    ] {
        for (occasion, expected) in [(Occasion::Install, install), (Occasion::Upgrade, upgrade)] {
            let (left, warnings) = one("Job", hook, "", occasion);
            assert_eq!(left.is_some(), expected, "{hook} {occasion:?}");
            assert_eq!(warnings, if expected { none } else { warning }, "{hook}");
        }
    }
}

#[test]
fn what_is_no_hook_is_not_touched() {
    for hook in ["", "crd-install"] {
        let before = manifest("Job", hook, "hook-succeeded");
        let kept = select_for_occasion(vec![before.clone()], Occasion::Install, Method::Helm);
        assert_eq!(kept.manifests, [before]);
    }
}

/// The order follows from the first phase that the annotation names.
#[test]
fn the_phase_is_that_of_the_occasion() {
    for (hook, occasion, expected) in [
        (
            "post-install,pre-upgrade",
            Occasion::Install,
            "post-install",
        ),
        (
            "post-install,pre-upgrade",
            Occasion::Upgrade,
            "post-install,pre-upgrade",
        ),
        (
            "pre-install,post-upgrade",
            Occasion::Upgrade,
            "post-upgrade",
        ),
        (
            "pre-install,post-install,post-upgrade",
            Occasion::Upgrade,
            "post-upgrade",
        ),
        // The same text each time, so that an upgrade without changes changes nothing.
        (
            "pre-install,pre-upgrade",
            Occasion::Install,
            "pre-install,pre-upgrade",
        ),
        (
            "post-install,post-upgrade",
            Occasion::Upgrade,
            "post-install,post-upgrade",
        ),
    ] {
        let (left, _) = one("Job", hook, "", occasion);
        assert_eq!(
            annotation(&left.unwrap(), HOOK),
            Some(expected),
            "{hook} {occasion:?}"
        );
    }
}

#[test]
fn policies_in_words_of_ours() {
    for (kind, hook, policy, recreate, create_only, ttl) in [
        ("Job", "pre-install", "", true, false, None),
        (
            "Job",
            "pre-install,pre-upgrade",
            "before-hook-creation",
            true,
            false,
            None,
        ),
        (
            "Job",
            "pre-install",
            "before-hook-creation, Hook-Succeeded",
            true,
            false,
            Some(STAYS),
        ),
        ("Job", "pre-install", "hook-failed", true, false, None),
        ("Pod", "post-install", "", true, false, None),
        ("Secret", "pre-install", "", false, true, None),
        // Rights for a Job that has run: the next version does not have them.
        ("Secret", "pre-install", "hook-succeeded", true, false, None),
        (
            "Secret",
            "pre-install,pre-upgrade",
            "hook-succeeded",
            true,
            false,
            None,
        ),
    ] {
        let (left, _) = one(kind, hook, policy, Occasion::Install);
        let left = left.unwrap();
        let says = |name| annotation(&left, name);
        assert_eq!(
            says(ANNOTATION_RECREATE),
            recreate.then_some("true"),
            "{kind} {hook}"
        );
        assert_eq!(
            says(ANNOTATION_APPLY),
            create_only.then_some(APPLY_CREATE_ONLY),
            "{kind} {hook}"
        );
        let seconds = left.pointer("/spec/ttlSecondsAfterFinished");
        assert_eq!(seconds.and_then(Value::as_u64), ttl, "{kind} {policy}");
    }
}

#[test]
fn what_the_chart_says_itself_stays() {
    let mut own = manifest("Job", "pre-install", "hook-succeeded");
    let object = Arc::make_mut(&mut own.object);
    object["metadata"]["annotations"][ANNOTATION_RECREATE] = "false".into();
    object["spec"]["ttlSecondsAfterFinished"] = 5.into();
    let kept = select_for_occasion(vec![own], Occasion::Install, Method::Helm);
    let object = &kept.manifests[0].object;
    assert_eq!(annotation(object, ANNOTATION_RECREATE), Some("false"));
    assert_eq!(object["spec"]["ttlSecondsAfterFinished"], 5);
}

/// The pods of a Job carry its digest, so any change of the Job changes a field that cannot change.
#[test]
fn a_changed_job_is_recreated() {
    let hook = |label: &str| {
        let mut manifest = manifest("Job", "pre-upgrade", "");
        Arc::make_mut(&mut manifest.object)["metadata"]["labels"] = json!({"helm.sh/chart": label});
        let kept = select_for_occasion(vec![manifest], Occasion::Upgrade, Method::Helm);
        kept.manifests[0].object["spec"]["template"].clone()
    };
    assert_eq!(hook("web-1.0.0"), hook("web-1.0.0"));
    assert_ne!(hook("web-1.0.0"), hook("web-1.0.1"));
}

/// Hooks that `helm template` prints for other phases, and marks of Argo CD and kustomize, are handled equally by all methods.
#[test]
fn what_other_tools_do_not_apply_is_left_out() {
    let argo = ARGO_HOOK;
    let rows = [
        (HOOK, "pre-delete", Some("it is a hook of pre-delete")),
        (HOOK, "post-delete", Some("it is a hook of post-delete")),
        (HOOK, "pre-rollback", Some("it is a hook of pre-rollback")),
        (argo, "PreSync", None),
        (argo, "SyncFail, PostSync", None),
        (argo, "", None),
        (
            argo,
            "PostDelete",
            Some("argocd.argoproj.io/hook: PostDelete is not applied"),
        ),
        (
            argo,
            "PreDelete",
            Some("argocd.argoproj.io/hook: PreDelete is not applied"),
        ),
        (
            argo,
            "SyncFail",
            Some("argocd.argoproj.io/hook: SyncFail is not applied"),
        ),
        (
            argo,
            "Skip",
            Some("argocd.argoproj.io/hook: Skip is not applied"),
        ),
        (
            argo,
            "PreSink",
            Some("argocd.argoproj.io/hook: PreSink is not applied"),
        ),
        (
            LOCAL_CONFIG,
            "true",
            Some("config.kubernetes.io/local-config says"),
        ),
        (
            LOCAL_CONFIG,
            "",
            Some("config.kubernetes.io/local-config says"),
        ),
        (LOCAL_CONFIG, "false", None),
    ];
    for method in [Method::Manifest, Method::GoTemplate, Method::Helm] {
        for (name, value, why) in rows {
            for occasion in [Occasion::Install, Occasion::Upgrade] {
                let mut object = manifest("Job", "", "");
                Arc::make_mut(&mut object.object)["metadata"]["annotations"][name] = value.into();
                let kept = select_for_occasion(vec![object], occasion, method);
                assert_eq!(kept.manifests.is_empty(), why.is_some(), "{name}: {value}");
                let said = said(&kept.left_out);
                assert_eq!(said.is_empty(), why.is_none(), "{name}: {value}: {said}");
                let expected = format!("chart:3: Job x is left out: {}", why.unwrap_or_default());
                assert!(why.is_none() || said.starts_with(&expected), "{said}");
            }
        }
    }
}

/// No one expects the tests of a chart to be installed. In a plain manifest, they are objects like all others.
#[test]
fn a_test_is_named_where_it_is_not_in_a_chart() {
    for (method, words) in [
        (Method::Helm, ""),
        (
            Method::Manifest,
            "chart:3: Pod x is left out: it is a hook of test, not of an installation or upgrade",
        ),
    ] {
        let kept =
            select_for_occasion(vec![manifest("Pod", "test", "")], Occasion::Install, method);
        assert!(kept.manifests.is_empty());
        assert_eq!(said(&kept.left_out), words);
    }
}

/// Argo CD uses Helm's hook if its own annotation names no known hook.
#[test]
fn an_unknown_hook_of_argo_beside_one_of_helm() {
    let mut object = manifest("Job", "pre-install,pre-upgrade", "");
    Arc::make_mut(&mut object.object)["metadata"]["annotations"][ARGO_HOOK] = "PreSink".into();
    let kept = select_for_occasion(vec![object], Occasion::Install, Method::Helm);
    assert_eq!(kept.manifests.len(), 1, "{:?}", kept.left_out);
}
