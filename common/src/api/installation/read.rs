//! Reads stored records, including those of which parts cannot be read: their objects still belong to them, and they can be
//! uninstalled.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde_json::Error;
use serde_json::value::RawValue;

use super::{
    AddonInstallation, AddonInstallationSpec, AddonInstallationStatus, AddonRef, DeletionPolicy,
};
use crate::api::stored::{RawFields, read_fields, read_without};
use crate::entrance::{self, MAX_STORED_DEPTH, UnreadableField};

/// The fields of a status that an uninstallation needs.
const STATUS: [&str; 10] = [
    "format",
    "phase",
    "conditions",
    "installed",
    "operation",
    "cluster",
    "createdNamespace",
    "inventory",
    "former",
    "history",
];

impl AddonInstallation {
    /// Reads a stored record. Leaves out what cannot be read, and sets `spec.unreadable`.
    ///
    /// # Errors
    /// The text is not an object, or its metadata cannot be read.
    pub fn read(text: &str) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct RawInstallation<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
            #[serde(borrow)]
            spec: &'a RawValue,
            #[serde(default, borrow)]
            status: Option<&'a RawValue>,
        }
        let parts: RawInstallation<'_> = entrance::read_outline(text.as_bytes())?;
        let mut spec = AddonInstallationSpec::read(parts.spec.get());
        let (metadata, unread) =
            read_without::<ObjectMeta>(parts.metadata, "metadata.managedFields", |field| {
                field != "managedFields"
            })?;
        spec.unreadable = spec.unreadable.or(unread);
        let status = match parts.status {
            None => None,
            Some(status) => {
                let read = read_without::<AddonInstallationStatus>(status, "status.*", |field| {
                    STATUS.contains(&field)
                });
                match read {
                    Ok((status, unread)) => {
                        spec.unreadable = spec.unreadable.or(unread);
                        Some(status)
                    }
                    Err(error) => {
                        spec.unreadable = Some(UnreadableField {
                            field: Self::STATUS,
                            why: entrance::describe_refusal(
                                status.get().as_bytes(),
                                &error,
                                MAX_STORED_DEPTH,
                            ),
                        });
                        None
                    }
                }
            }
        };
        Ok(Self {
            metadata,
            spec,
            status,
        })
    }

    /// The name of the unreadable field if nothing of the status can be read. Then the objects of the record are not known.
    pub const STATUS: &str = "status";
}

impl AddonInstallationSpec {
    /// Reads a stored spec. If that fails, leaves out the values; if that fails, too, keeps only the fields that guards and
    /// uninstallations need, and sets all others to their defaults. `unreadable` says so.
    #[must_use]
    pub fn read(text: &str) -> Self {
        if let Some(spec) = Self::read_without_large_values(text) {
            return spec;
        }
        let error = match entrance::from_str(text) {
            Ok(spec) => return spec,
            Err(error) => error,
        };
        let fields: RawFields<'_> = entrance::read_outline(text.as_bytes()).unwrap_or_default();
        if let Some(values) = fields.get("values") {
            let checked = entrance::from_str::<serde_json::Value>(values.get());
            if let Err(error) = checked
                && let Ok(spec) = read_fields(&fields, |field| field != "values")
            {
                return Self {
                    unreadable: Some(UnreadableField {
                        field: "spec.values",
                        why: entrance::describe_refusal(
                            values.get().as_bytes(),
                            &error,
                            MAX_STORED_DEPTH,
                        ),
                    }),
                    ..spec
                };
            }
        }
        Self {
            unreadable: Some(UnreadableField {
                field: "spec",
                why: entrance::describe_refusal(text.as_bytes(), &error, MAX_STORED_DEPTH),
            }),
            ..read_guarded_spec(&fields)
        }
    }

    /// Leaves out values that are too large without reading them, because a list may contain many such records.
    fn read_without_large_values(text: &str) -> Option<Self> {
        entrance::check_values(text).err()?;
        let fields: RawFields<'_> = entrance::read_outline(text.as_bytes()).ok()?;
        let refused = entrance::check_values(fields.get("values")?.get()).err()?;
        let spec = read_fields(&fields, |field| field != "values");
        Some(Self {
            unreadable: Some(UnreadableField {
                field: "spec.values",
                why: refused.to_string(),
            }),
            ..spec.unwrap_or_else(|_| read_guarded_spec(&fields))
        })
    }
}

/// Reads only the fields of a spec that guards and uninstallations need. If it is not known whether objects are deleted with it, they
/// stay.
fn read_guarded_spec(fields: &RawFields<'_>) -> AddonInstallationSpec {
    let text = |fields: &RawFields<'_>, name: &str| -> Option<String> {
        entrance::read_outline(fields.get(name)?.get().as_bytes()).ok()
    };
    let is_true = |name: &str| fields.get(name).is_some_and(|raw| raw.get() == "true");
    let reference = fields.get("addonRef").map(|raw| raw.get().as_bytes());
    let reference: RawFields<'_> = reference
        .and_then(|reference| entrance::read_outline(reference).ok())
        .unwrap_or_default();
    let of_reference = |name: &str| text(&reference, name);
    let policy = fields.get("deletionPolicy").map(|raw| raw.get().as_bytes());
    AddonInstallationSpec {
        addon_ref: AddonRef {
            name: of_reference("name").unwrap_or_default(),
            version: of_reference("version"),
            id: of_reference("id"),
            catalogue: of_reference("catalogue"),
            index: of_reference("index"),
            directory: of_reference("directory"),
            from: None,
            digest: of_reference("digest"),
        },
        core_addon: is_true("coreAddon"),
        target_namespace: text(fields, "targetNamespace"),
        // An account that is named but cannot be read becomes an empty name, which no account has, instead of the caller's account.
        service_account_name: fields
            .contains_key("serviceAccountName")
            .then(|| text(fields, "serviceAccountName").unwrap_or_default()),
        suspend: is_true("suspend"),
        deletion_policy: policy.map_or(DeletionPolicy::Delete, |policy| {
            entrance::read_outline(policy).unwrap_or(DeletionPolicy::Orphan)
        }),
        ..AddonInstallationSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn nested(levels: usize) -> String {
        format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    /// A record with these texts.
    fn record(values: &str, managed: &str, status: &str) -> String {
        format!(
            r#"{{"metadata":{{"name":"a","uid":"u","finalizers":["f"],"managedFields":[{{"manager":"m","fieldsV1":{managed}}}]}},
                "spec":{{"addonRef":{{"name":"web"}},"coreAddon":true,"deletionPolicy":"Orphan","values":{values}}},"status":{status}}}"#
        )
    }

    #[test]
    fn whatever_cannot_be_read_the_rest_can() {
        let inventory = r#"{"inventory":[{"version":"v1","kind":"Pod","objects":[{"name":"p"}]}]"#;
        let status = |more: &str| format!("{inventory}{more}}}");
        let (deep, key) = (nested(130), r#"{"$serde_json::private::RawValue":"{"}"#);
        for (values, managed, more, field) in [
            ("{}", "{}", String::new(), None),
            (deep.as_str(), "{}", String::new(), Some("spec.values")),
            (key, "{}", String::new(), Some("spec.values")),
            (
                "{}",
                deep.as_str(),
                String::new(),
                Some("metadata.managedFields"),
            ),
            ("{}", "{}", format!(",\"choices\":{deep}"), Some("status.*")),
            ("{}", "{}", format!(",\"later\":{key}"), Some("status.*")),
            (
                deep.as_str(),
                deep.as_str(),
                format!(",\"choices\":{deep}"),
                Some("spec.values"),
            ),
        ] {
            let read = AddonInstallation::read(&record(values, managed, &status(&more))).unwrap();
            let unreadable = read.spec.unreadable.as_ref().map(|one| one.field);
            assert_eq!(unreadable, field);
            assert_eq!(read.metadata.finalizers, Some(vec!["f".to_owned()]));
            assert_eq!(read.spec.addon_ref.name, "web");
            assert!(read.spec.core_addon);
            assert_eq!(read.spec.deletion_policy, DeletionPolicy::Orphan);
            assert_eq!(read.status.unwrap().inventory.len(), 1);
        }
        let read = AddonInstallation::read(&record("{}", "{}", r#"{"inventory":1}"#)).unwrap();
        let unreadable = read.spec.unreadable.unwrap();
        assert_eq!(unreadable.field, AddonInstallation::STATUS);
        assert_eq!(read.status, None);
    }

    #[test]
    fn values_that_are_too_large_are_not_read() {
        let of = |length: usize| {
            let spec = json!({"addonRef": {"name": "web"}, "coreAddon": true, "values": {"a": "x".repeat(length)}});
            AddonInstallationSpec::read(&spec.to_string())
        };
        let read = of(300 << 10);
        assert!(read.core_addon);
        assert_eq!((read.addon_ref.name.as_str(), read.values), ("web", None));
        let words = read.unreadable.unwrap().to_string();
        let expected =
            "spec.values: it cannot be read: it has 307208 bytes, and 262144 are allowed";
        assert!(words.starts_with(expected), "{words}");
        assert!(of(200 << 10).values.is_some());
    }

    #[test]
    fn of_a_specification_that_fits_no_schema_guards_are_read() {
        let spec = json!({
            "addonRef": {"name": "web", "version": 1}, "coreAddon": true, "targetNamespace": "n", "suspend": true,
            "serviceAccountName": 3, "deletionPolicy": "Later", "values": {"secret": "s3cret"}, "conflicts": "New",
        });
        let read = AddonInstallationSpec::read(&spec.to_string());
        let expected = AddonInstallationSpec {
            addon_ref: AddonRef {
                name: "web".into(),
                ..AddonRef::default()
            },
            core_addon: true,
            target_namespace: Some("n".into()),
            suspend: true,
            service_account_name: Some(String::new()),
            deletion_policy: DeletionPolicy::Orphan,
            unreadable: read.unreadable.clone(),
            ..AddonInstallationSpec::default()
        };
        assert_eq!(read, expected);
        let words = read.unreadable.unwrap().to_string();
        assert!(
            words.starts_with("spec: it cannot be read: wrong type"),
            "{words}"
        );
        assert!(!words.contains("s3cret"), "{words}");
        let written: Value = serde_json::to_value(expected).unwrap();
        assert_eq!(written.get("unreadable"), None);
    }
}
