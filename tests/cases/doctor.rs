//! `doctor`: what is broken is found, and the command that it names mends it.

use addons_tests::plugin::Output;
use addons_tests::scene::{catalogue, create, installation, version};
use addons_tests::tally::Tally;
use addons_tests::until::until;
use anyhow::{Context as _, Result, ensure};
use common::api::names::SYSTEM_NAMESPACE;
use serde_json::{Value, json};

use crate::deploy::world::World;

/// Members may change and delete what the policies guard.
const CORE: [&str; 4] = [
    "--as=core",
    "--as-group=system:masters",
    "--as-group=kubectl-addons:core",
    "--as-group=kubectl-addons:break-glass",
];
const INTERRUPTED: &str = r#"-p={"status":{"operation":{"id":"1","verb":"upgrade","holder":"me","startedAt":"2020-01-01T00:00:00Z","renewedAt":"2020-01-01T00:00:00Z","leaseSeconds":15}}}"#;

/// One thing that is broken.
struct Broken {
    /// By kubectl; words are separated by blanks.
    by: &'static [&'static str],
    /// Severity and object.
    found: (&'static str, &'static str),
    /// The command that mends it.
    fix: &'static str,
}

/// One cluster, on which one thing after the other is broken and mended.
#[tokio::test]
async fn what_is_broken_is_found_and_mended() -> Result<()> {
    let mut tally = Tally::new("doctor");
    let world = World::new().await?;
    from_nothing(&world, &mut tally).await?;
    let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let source = json!({"defaultNamespace": "shop", "source": {"inline": {"manifest": manifest}}});
    let addons = json!([{"name": "web", "versions": [version("1.0.0", source)]}]);
    let object = catalogue("shop", SYSTEM_NAMESPACE, addons);
    create(&world.admin, &object, &[]).await?.done()?;
    let install = ["install", "web", "--yes"];
    world.admin.run(&install).await?.done()?;
    // Nothing is to be done about it, and its namespace stands for the cluster.
    for command in [
        "create namespace lost",
        "label namespace lost kubectl-addons.dev/cluster=local",
    ] {
        let args: Vec<&str> = command.split(' ').chain(CORE).collect();
        world.admin.kubectl(&args).await?.done()?;
    }
    let spec = json!({"addonRef": {"name": "web"}, "targetNamespace": "lost"});
    let record = installation("web", "lost", spec);
    until("the namespace stands for the cluster", async || {
        let said = create(&world.admin, &record, &[]).await?;
        Ok((said.code == 0).then_some(()).ok_or(said.stderr))
    })
    .await?;
    let upgrade = ["upgrade", "web", "-n", "lost", "--yes"];
    world.admin.run(&upgrade).await?.done()?;
    for broken in ROWS {
        row(&world, broken)
            .await
            .with_context(|| broken.by.join("; "))?;
        tally.ran();
    }
    readers(&world, &mut tally).await
}

/// A set that `kubectl apply` created without a namespace is never installed: every command that reads records says so, and where it belongs.
#[tokio::test]
async fn a_set_in_a_wrong_namespace_is_seen() -> Result<()> {
    let mut tally = Tally::new("doctor, a misplaced set");
    let world = World::new().await?;
    world.admin.run(&["init", "--yes"]).await?.done()?;
    let set = |name: &str, namespace: &str| {
        json!({
            "apiVersion": "kubectl-addons.dev/v1alpha1", "kind": "AddonInstallation",
            "metadata": {"name": name, "namespace": namespace}, "spec": {"addonRef": {"name": "web"}},
        })
    };
    for name in ["a", "b"] {
        create(&world.admin, &set(name, "default"), &[])
            .await?
            .done()?;
    }
    let warning = "warning: default/a, default/b: nothing installs what is in a namespace that does not stand for a cluster; \
                   installations of this cluster belong in kubectl-addons";
    for args in [
        &["list"][..],
        &["list", "-n", "default"],
        &["status", "a", "-n", "default"],
    ] {
        let said = world.admin.run(args).await?.done()?;
        let text = match args {
            ["status", ..] => warning.replace(", default/b", ""),
            _ => warning.to_owned(),
        };
        ensure!(said.stderr.contains(&text), "{args:?}: {}", said.stderr);
        let all = format!("{}{}", said.stdout, said.stderr);
        ensure!(!all.contains("upgrade a"), "{args:?}: {all}");
        tally.ran();
    }
    let problems = problems(&world).await?;
    let fix =
        "apply it with -n kubectl-addons, then: kubectl delete addoninstallation a -n default";
    let is_found = |one: &Value| one["object"] == "installation default/a" && one["fix"] == fix;
    ensure!(problems.iter().any(is_found), "{problems:?}");
    tally.ran();
    // Followed, it is pending, and the command that continues is named.
    for name in ["a", "b"] {
        create(&world.admin, &set(name, SYSTEM_NAMESPACE), &[])
            .await?
            .done()?;
        let gone = ["delete", "addoninstallation", name, "-n", "default"];
        world.admin.kubectl(&gone).await?.done()?;
    }
    let said = world.admin.run(&["list"]).await?.done()?;
    let continued = "a is pending; to continue: kubectl addons upgrade a\nb is pending; to continue: kubectl addons upgrade b";
    ensure!(
        said.stderr.contains(continued) && !said.stderr.contains("warning"),
        "{}",
        said.stderr
    );
    tally.ran();
    Ok(())
}

/// Without anything, our definitions are missing, and the rest was not asked for.
async fn from_nothing(world: &World, tally: &mut Tally) -> Result<()> {
    for (code, severity, fix) in [
        (1, "error", "kubectl addons init"),
        (0, "warning", "kubectl addons init --webhook"),
        (0, "warning", "kubectl addons init --policies"),
    ] {
        let said = world.admin.run(&["doctor"]).await?.ended(code)?;
        let mut lines = said.stdout.lines();
        let line = lines.find(|line| line.starts_with(severity) && line.ends_with(fix));
        ensure!(line.is_some(), "{fix}: {}", said.stdout);
        run(world, fix).await?;
        tally.ran();
    }
    let said = world.admin.run(&["doctor"]).await?.done()?;
    let is_healthy = said.stdout.is_empty() && said.stderr.contains("no problems found");
    ensure!(is_healthy, "{}{}", said.stdout, said.stderr);
    tally.ran();
    Ok(())
}

const ROWS: &[Broken] = &[
    Broken {
        by: &[
            "patch crd addoncatalogues.kubectl-addons.dev --type=merge -p={\"spec\":{\"names\":{\"shortNames\":[\"cat\"]}}}",
        ],
        found: (
            "error",
            "CustomResourceDefinition addoncatalogues.kubectl-addons.dev",
        ),
        fix: "kubectl addons init",
    },
    Broken {
        by: &["delete validatingadmissionpolicybinding kubectl-addons-guards"],
        found: (
            "error",
            "ValidatingAdmissionPolicyBinding kubectl-addons-guards",
        ),
        fix: "kubectl addons init --policies",
    },
    Broken {
        by: &[
            "patch validatingadmissionpolicybinding kubectl-addons-status --type=merge -p={\"spec\":{\"validationActions\":[\"Audit\"]}}",
        ],
        found: (
            "error",
            "ValidatingAdmissionPolicyBinding kubectl-addons-status",
        ),
        fix: "kubectl addons init --policies",
    },
    Broken {
        by: &["delete mutatingwebhookconfiguration kubectl-addons"],
        found: ("error", "MutatingWebhookConfiguration kubectl-addons"),
        fix: "kubectl addons init --webhook",
    },
    Broken {
        by: &[
            "patch validatingwebhookconfiguration kubectl-addons --type=json -p=[{\"op\":\"replace\",\"path\":\"/webhooks/0/failurePolicy\",\"value\":\"Ignore\"}]",
        ],
        found: ("warning", "ValidatingWebhookConfiguration kubectl-addons"),
        fix: "kubectl addons init --webhook",
    },
    Broken {
        by: &[
            "patch role addons-webhook -n kubectl-addons --type=json -p=[{\"op\":\"remove\",\"path\":\"/rules/0\"}]",
        ],
        found: ("error", "installation kubectl-addons/addons-webhook"),
        fix: concat!(
            "kubectl addons upgrade addons-webhook@",
            env!("CARGO_PKG_VERSION"),
            " -n kubectl-addons --repair"
        ),
    },
    Broken {
        by: &["label namespace lost kubectl-addons.dev/cluster-"],
        found: ("error", "installation lost/web"),
        fix: "kubectl label namespace lost kubectl-addons.dev/cluster=local",
    },
    Broken {
        by: &["scale deployment addons-webhook --replicas=0 -n kubectl-addons"],
        found: ("error", "kubectl-addons/Service addons-webhook"),
        fix: "kubectl addons init --webhook",
    },
    Broken {
        by: &["label namespace kubectl-addons kubectl-addons.dev/holds-core-"],
        found: ("error", "Namespace kubectl-addons"),
        fix: "kubectl label namespace kubectl-addons kubectl-addons.dev/holds-core=true",
    },
    Broken {
        by: &[
            "patch addoninstallation web -n kubectl-addons --subresource=status --type=merge INTERRUPTED",
        ],
        found: ("error", "installation kubectl-addons/web"),
        fix: "kubectl addons upgrade web -n kubectl-addons",
    },
    Broken {
        by: &["delete namespace shop"],
        found: ("error", "installation kubectl-addons/web"),
        fix: "kubectl addons upgrade web@1.0.0 -n kubectl-addons --repair",
    },
    Broken {
        by: &["delete addoninstallation web -n kubectl-addons"],
        found: ("warning", "installation kubectl-addons/web"),
        fix: "kubectl addons adopt web -n kubectl-addons",
    },
    Broken {
        by: &[
            "patch addoninstallation web -n kubectl-addons --type=merge -p={\"metadata\":{\"finalizers\":[\"kubectl-addons.dev/uninstall\"]}}",
            "delete addoninstallation web -n kubectl-addons --wait=false",
        ],
        found: ("error", "installation kubectl-addons/web"),
        fix: "kubectl addons reconcile web -n kubectl-addons",
    },
    Broken {
        by: &[
            "create namespace both",
            "create secret generic remote -n both",
            "label namespace both kubectl-addons.dev/cluster=local kubectl-addons.dev/kubeconfig-secret=remote",
        ],
        found: ("error", "Namespace both"),
        fix: "kubectl label namespace both kubectl-addons.dev/cluster-",
    },
    Broken {
        by: &[
            "create namespace remote",
            "label namespace remote kubectl-addons.dev/kubeconfig-secret=gone",
        ],
        found: ("error", "Namespace remote"),
        fix: "kubectl label namespace remote kubectl-addons.dev/kubeconfig-secret-",
    },
];

/// Breaks one thing, finds it, and mends it as is said; then nothing is wrong any more.
async fn row(world: &World, broken: &Broken) -> Result<()> {
    for command in broken.by {
        let words = command.split(' ');
        let words = words.map(|word| match word {
            "INTERRUPTED" => INTERRUPTED,
            other => other,
        });
        let args: Vec<&str> = words.chain(CORE).collect();
        world.admin.kubectl(&args).await?.done()?;
    }
    let (severity, object) = broken.found;
    until("it is found", async || {
        let problems = problems(world).await?;
        let mut found = problems.iter();
        let found = found.any(|one| {
            one["object"] == object && one["severity"] == severity && one["fix"] == broken.fix
        });
        Ok(found.then_some(()).ok_or_else(|| format!("{problems:?}")))
    })
    .await?;
    let mended = run(world, broken.fix).await?;
    until("it is mended", async || {
        let problems = problems(world).await?;
        let is_mended = problems.is_empty();
        let why = || format!("{problems:?}\n{}", mended.stderr);
        Ok(is_mended.then_some(()).ok_or_else(why))
    })
    .await
}

/// Who may read nothing is told what could not be checked, and nothing is broken by that; neither is a reconciler that is gone.
async fn readers(world: &World, tally: &mut Tally) -> Result<()> {
    let said = world.admin.run(&["doctor", "--as=someone"]).await?;
    for text in ["the installations", "not allowed", "the caller"] {
        ensure!(said.stdout.contains(text), "{text}: {}", said.stdout);
    }
    said.done()?;
    tally.ran();
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "addons-reconciler", "namespace": SYSTEM_NAMESPACE},
        "spec": {"holderIdentity": "pod", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"},
    });
    create(&world.admin, &lease, &[]).await?.done()?;
    let said = world.admin.run(&["doctor"]).await?.done()?;
    let is_told = said.stdout.contains("pod has not renewed it");
    ensure!(is_told, "{}", said.stdout);
    let (_, commands) = said
        .stdout
        .split_once("if it is removed for good: ")
        .context("no fix")?;
    for command in commands.lines().next().unwrap_or_default().split(" && ") {
        run(world, command.trim_end()).await?;
    }
    let problems = problems(world).await?;
    ensure!(problems.is_empty(), "{problems:?}");
    tally.ran();
    Ok(())
}

/// The problems, as programs read them.
async fn problems(world: &World) -> Result<Vec<Value>> {
    let said = world.admin.run(&["doctor", "-o", "json"]).await?;
    let found: Value = serde_json::from_str(&said.stdout).with_context(|| said.stderr.clone())?;
    let items = found["items"].as_array().cloned().context("no items")?;
    let is_broken = items.iter().any(|item| item["severity"] == "error");
    ensure!(
        said.code == i32::from(is_broken),
        "{}: {items:?}",
        said.code
    );
    Ok(items)
}

/// Runs a command as it was printed, by a user who may do everything, and who is not asked.
async fn run(world: &World, command: &str) -> Result<Output> {
    let mut args: Vec<&str> = command.split(' ').skip(1).collect();
    if args.first() != Some(&"addons") {
        args.extend(CORE);
        return world.admin.kubectl(&args).await?.done();
    }
    args.remove(0);
    if args.first() != Some(&"reconcile") {
        args.push("--yes");
    }
    args.extend(CORE);
    world.admin.run(&args).await?.done()
}
