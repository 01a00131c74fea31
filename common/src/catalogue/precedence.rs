//! Finds duplicate entries, and the catalogue that keeps them (semantics 2.1, 2.4). Entries with equal names and versions are
//! duplicates, unless both carry an id and the ids differ. The older catalogue keeps its entries, and a catalogue of class Core keeps
//! its names. While a catalogue cannot be read, it is unknown what the later ones keep.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use semver::{BuildMetadata, Version};

use super::{CatalogueEntry, is_copy, split_offering};
use crate::api::catalogue::{AddonCatalogue, AddonVersion, CatalogueClass};
use addons_versions::tolerant;

/// A version as it is compared for duplicates: `v1`, `1` and `1.0.0` are equal, build metadata is ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum VersionKey {
    /// A readable version.
    Version(Version),
    /// Any other text, also an empty one.
    Text(String),
}

/// Returns the key of a version text.
fn version_key(version: &str) -> VersionKey {
    match tolerant::parse(version) {
        Ok(mut version) => {
            version.build = BuildMetadata::EMPTY;
            VersionKey::Version(version)
        }
        Err(_) => VersionKey::Text(version.trim().to_owned()),
    }
}

/// The fields of an entry that decide about duplicates, and its place.
#[derive(Debug)]
pub struct ComparedEntry<'a, P> {
    key: (&'a str, VersionKey),
    id: &'a str,
    /// The place of the entry.
    pub place: P,
}

impl<'a, P> ComparedEntry<'a, P> {
    /// Creates the entry for a version of the add-on `name`.
    pub fn new(name: &'a str, version: &'a AddonVersion, place: P) -> Self {
        Self {
            key: (name, version_key(&version.version)),
            id: &version.id,
            place,
        }
    }

    /// Returns the name of the add-on.
    pub fn addon(&self) -> &'a str {
        self.key.0
    }
}

/// The entries that were already compared, by name and version.
#[derive(Debug)]
pub struct EntryIndex<'a, P> {
    entries: HashMap<(&'a str, VersionKey), EntryGroup<'a, P>>,
}

/// The entries with one name and version.
#[derive(Debug)]
struct EntryGroup<'a, P> {
    first: P,
    without_id: Option<P>,
    by_id: BTreeMap<&'a str, P>,
}

impl<'a, P: Copy> EntryIndex<'a, P> {
    /// Creates an empty set with space for `entries`.
    pub fn with_capacity(entries: usize) -> Self {
        Self {
            entries: HashMap::with_capacity(entries),
        }
    }

    /// Whether no entry was inserted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the place of the earlier entry that this one duplicates.
    pub fn find_earlier<Q>(&self, entry: &ComparedEntry<'a, Q>) -> Option<P> {
        let group = self.entries.get(&entry.key)?;
        match entry.id {
            "" => Some(group.first),
            id => group.by_id.get(id).copied().or(group.without_id),
        }
    }

    /// Adds an entry.
    pub fn insert(&mut self, ComparedEntry { key, id, place }: ComparedEntry<'a, P>) {
        let group = self.entries.entry(key).or_insert_with(|| EntryGroup {
            first: place,
            without_id: None,
            by_id: BTreeMap::new(),
        });
        if id.is_empty() {
            group.without_id.get_or_insert(place);
        } else {
            group.by_id.entry(id).or_insert(place);
        }
    }
}

/// Orders catalogues by age, the older one first, and catalogues of the same age by name.
pub fn compare_age(a: &ObjectMeta, b: &ObjectMeta) -> Ordering {
    let age = |catalogue: &ObjectMeta| {
        let created = catalogue.creation_timestamp.as_ref();
        (
            created.is_none(),
            created.map(|time| time.0),
            catalogue.name.clone(),
        )
    };
    age(a).cmp(&age(b))
}

/// The fields of a source catalogue that decide which entries it keeps.
#[derive(Debug)]
pub struct SourceCatalogue<'a> {
    /// Its metadata.
    pub metadata: &'a ObjectMeta,
    /// Its class.
    pub class: CatalogueClass,
    /// The names that it lists, also those without a version.
    pub addons: Vec<&'a str>,
    /// Its entries.
    pub entries: &'a [CatalogueEntry],
}

impl SourceCatalogue<'_> {
    fn is_core(&self) -> bool {
        self.class == CatalogueClass::Core
    }
}

/// Orders catalogues by precedence: the first of two keeps the entries that both list. Class Core comes first, then age decides.
pub fn compare_precedence(
    (a, of_a): (&ObjectMeta, CatalogueClass),
    (b, of_b): (&ObjectMeta, CatalogueClass),
) -> Ordering {
    let is_custom = |class| class != CatalogueClass::Core;
    let by_class = is_custom(of_a).cmp(&is_custom(of_b));
    by_class.then_with(|| compare_age(a, b))
}

/// Returns the entries that sources lost to others: from the position of the source and of the entry in it to the position of the
/// source that holds it.
pub fn find_lost_entries(sources: &[SourceCatalogue<'_>]) -> HashMap<(usize, usize), usize> {
    // Usually, catalogues list different add-ons: only names that several of them list are compared.
    let mut listed: HashMap<&str, usize> = HashMap::new();
    for addon in sources.iter().flat_map(|source| &source.addons) {
        *listed.entry(addon).or_default() += 1;
    }
    let is_shared = |addon: &str| listed.get(addon).is_some_and(|times| *times > 1);
    let mut winners: Vec<_> = sources.iter().enumerate().collect();
    winners
        .sort_by(|(_, a), (_, b)| compare_precedence((a.metadata, a.class), (b.metadata, b.class)));
    let mut core: HashMap<&str, usize> = HashMap::new();
    for (position, source) in winners.iter().filter(|(_, source)| source.is_core()) {
        for addon in &source.addons {
            core.entry(addon).or_insert(*position);
        }
    }
    let mut lost = HashMap::new();
    let mut seen = EntryIndex::with_capacity(0);
    for (position, source) in winners {
        let entries = source.entries.iter().enumerate();
        let shared = entries.filter(|(_, entry)| is_shared(&entry.addon));
        let compared: Vec<_> = shared
            .map(|(at, entry)| ComparedEntry::new(&entry.addon, &entry.version, (position, at)))
            .collect();
        for one in &compared {
            let of_core = core.get(one.addon()).filter(|_| !source.is_core());
            let earlier = seen.find_earlier(one).map(|(position, _)| position);
            if let Some(holder) = of_core.copied().or(earlier) {
                lost.insert(one.place, holder);
            }
        }
        // Inserted only after the loop: a catalogue does not lose its own duplicates to another one.
        for one in compared {
            seen.insert(one);
        }
    }
    lost
}

/// A catalogue that cannot be read, or whose referenced file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadCatalogue {
    /// The name of the catalogue.
    pub catalogue: String,
    /// The class of the catalogue.
    pub class: CatalogueClass,
    /// The names of the add-ons that it lists.
    pub addons: Vec<String>,
    /// The catalogues that lose shared entries to it, so that their offer is unknown, too.
    pub losers: Vec<String>,
    /// The reason.
    pub why: String,
}

impl UnreadCatalogue {
    /// Whether `catalogue` loses the entries that both list to this one.
    #[must_use]
    pub fn takes_from(&self, catalogue: &str) -> bool {
        self.losers.iter().any(|loser| loser == catalogue)
    }
}

/// Returns the names of the sources that lose the entries they share with `catalogue`. A copy takes nothing from a source.
#[must_use]
pub fn list_losers(catalogue: &AddonCatalogue, objects: &[AddonCatalogue]) -> Vec<String> {
    if is_copy(&catalogue.metadata) {
        return Vec::new();
    }
    let (_, sources) = split_offering(objects);
    let is_later = |other: &&AddonCatalogue| {
        let (first, second) = (&catalogue.metadata, &other.metadata);
        compare_precedence((first, catalogue.spec.class), (second, other.spec.class)).is_lt()
    };
    let later = sources.into_iter().filter(is_later);
    later
        .filter_map(|other| other.metadata.name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::api::catalogue::{AddonCatalogue, CatalogueClass};
    use crate::api::fixtures::{addon, catalogue, core_catalogue};
    use crate::api::names::LABEL_DERIVED_FROM;
    use crate::catalogue::precedence::{UnreadCatalogue, list_losers};
    use crate::catalogue::select::{ClusterVersions, EntryRequest, SelectionRules, select};
    use crate::catalogue::{Catalogue, LostEntry, Origin};

    fn made(class: CatalogueClass, name: &str, second: u8, addons: Value) -> AddonCatalogue {
        let mut object = match class {
            CatalogueClass::Core => core_catalogue(name, addons),
            CatalogueClass::Custom => catalogue(name, addons),
        };
        let time = json!(format!("2026-01-01T00:00:0{second}Z"));
        object.metadata.creation_timestamp = serde_json::from_value(time).unwrap();
        object
    }

    fn offered(catalogue: &Catalogue) -> Vec<String> {
        let entries = catalogue.entries.iter();
        let text = entries.map(|entry| {
            let Origin::Catalogue { name, .. } = &*entry.origin else {
                panic!("{entry:?}");
            };
            format!("{name}: {} {}", entry.addon, entry.version.version)
        });
        text.collect()
    }

    fn lost(catalogue: &Catalogue) -> Vec<String> {
        let lost = catalogue.lost.iter();
        let text = lost.map(|LostEntry { entry, holder }| {
            let at = entry.origin.to_string().replace("catalogue ", "");
            format!(
                "{holder} holds {at}: {} {}",
                entry.addon, entry.version.version
            )
        });
        text.collect()
    }

    /// A catalogue whose file cannot be read may hold entries that later ones list.
    #[test]
    fn what_loses_to_an_unread_catalogue_is_not_known() {
        use CatalogueClass::{Core, Custom};
        let web = || json!([addon("web", &["1.0.0"])]);
        let all = [
            made(Custom, "older", 1, web()),
            made(Custom, "younger", 2, web()),
            made(Core, "core", 3, web()),
        ];
        for (unread, expected) in [(0, &["younger"][..]), (1, &[]), (2, &["older", "younger"])] {
            let losers = list_losers(&all[unread], &all);
            assert_eq!(losers, expected);
            let unread = UnreadCatalogue {
                catalogue: all[unread].metadata.name.clone().unwrap(),
                class: all[unread].spec.class,
                addons: vec!["web".to_owned()],
                losers,
                why: "not found".to_owned(),
            };
            let known = Catalogue {
                unread: vec![unread],
                ..Catalogue::default()
            };
            assert!(known.find_unread("web", None).is_some());
            assert!(known.find_unread("dns", None).is_none());
            for one in &all {
                let name = one.metadata.name.as_deref().unwrap();
                let is_open = expected.contains(&name) || known.unread[0].catalogue == name;
                assert_eq!(
                    known.find_unread("web", Some(name)).is_some(),
                    is_open,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_older_catalogue_keeps_its_entries_and_one_of_class_core_its_names() {
        use CatalogueClass::{Core, Custom};
        let younger = made(
            Custom,
            "a",
            2,
            json!([addon("web", &["v1", "2.0.0"]), addon("api", &["1.0.0"])]),
        );
        let older = made(Custom, "b", 1, json!([addon("web", &["1.0.0"])]));
        let twin = made(Custom, "c", 1, json!([addon("web", &["1"])]));
        let dns = made(Custom, "d", 1, json!([addon("dns", &["1.0.0", "9.0.0"])]));
        let core = made(Core, "e", 3, json!([addon("dns", &["1.0.0"])]));
        let mut copy = made(Custom, "f", 0, json!([addon("web", &["1.0.0", "3.0.0"])]));
        copy.metadata.labels = Some([(LABEL_DERIVED_FROM.to_owned(), "x".to_owned())].into());
        let all = [younger, twin, older, dns, core, copy];
        let expected = [
            "a: web 2.0.0",
            "a: api 1.0.0",
            "b: web 1.0.0",
            "e: dns 1.0.0",
            "f: web 3.0.0",
        ];
        let merged = Catalogue::from_objects(&all);
        assert_eq!(offered(&merged), expected);
        assert_eq!(
            lost(&merged),
            [
                "b holds a: web v1",
                "b holds c: web 1",
                "e holds d: dns 1.0.0",
                "e holds d: dns 9.0.0"
            ]
        );
        assert_eq!(
            lost(&Catalogue::from_named(&all, "a")),
            ["b holds a: web v1"]
        );
        // What a catalogue lost it does not offer by its name either.
        for (name, expected) in [
            ("a", &["a: web 2.0.0", "a: api 1.0.0"][..]),
            ("c", &[]),
            ("d", &[]),
            ("e", &["e: dns 1.0.0"]),
            ("f", &["f: web 1.0.0", "f: web 3.0.0"]),
        ] {
            assert_eq!(offered(&Catalogue::from_named(&all, name)), expected);
        }
    }

    #[test]
    fn of_a_tie_the_entry_of_the_older_catalogue_is_chosen() {
        let web = json!([addon("web", &["1.0.0"])]);
        let older = made(CatalogueClass::Custom, "a", 1, web.clone());
        let younger = made(CatalogueClass::Custom, "b", 2, web);
        let request = EntryRequest {
            addon: "web",
            ..EntryRequest::default()
        };
        let catalogue = Catalogue::from_objects(&[older, younger]);
        let selection = select(
            &catalogue,
            &request,
            &ClusterVersions::default(),
            SelectionRules::Auto,
        );
        let chosen = selection.chosen.unwrap();
        assert_eq!(chosen.origin.to_string(), "catalogue a");
        assert_eq!(selection.warnings, [""; 0]);
    }
}
