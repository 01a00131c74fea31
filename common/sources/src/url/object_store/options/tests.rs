use super::*;

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// object_store reads options by these names; a name that it does not know would be lost.
#[test]
fn every_option_is_known_to_the_client() {
    for kind in [Kind::S3, Kind::Google, Kind::Azure] {
        for (name, _) in kind.known() {
            let name = name.to_ascii_lowercase();
            let known = match kind {
                Kind::S3 => name.parse::<object_store::aws::AmazonS3ConfigKey>().is_ok(),
                Kind::Google => name.parse::<object_store::gcp::GoogleConfigKey>().is_ok(),
                Kind::Azure => name.parse::<object_store::azure::AzureConfigKey>().is_ok(),
            };
            assert!(known, "{name}");
        }
    }
}

#[test]
fn a_secret_names_nothing_of_this_machine() {
    for (kind, name) in [
        (Kind::S3, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (Kind::S3, "AWS_METADATA_ENDPOINT"),
        (Kind::S3, "AWS_BUCKET"),
        (Kind::S3, "aws_access_key_id"),
        (Kind::S3, "proxy_url"),
        (Kind::Google, "GOOGLE_APPLICATION_CREDENTIALS"),
        (Kind::Google, "AWS_ACCESS_KEY_ID"),
        (Kind::Azure, "AZURE_FEDERATED_TOKEN_FILE"),
        (Kind::Azure, "AZURE_USE_AZURE_CLI"),
    ] {
        let error = of_secret(kind, &values(&[(name, "x")])).unwrap_err();
        assert!(error.starts_with(&format!("key {name} is not a known option")));
    }
    assert_eq!(
        of_secret(Kind::S3, &values(&[("AWS_ACCESS_KEY_ID", "x")])),
        Ok(())
    );
}

#[test]
fn what_signs_and_what_does_not() {
    let read = |pairs| Options::read(Kind::S3, values(pairs), String::new());
    assert!(read(&[("AWS_ACCESS_KEY_ID", "x")]).signed);
    assert!(!read(&[("AWS_REGION", "x")]).signed);
    let unsigned = read(&[
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SKIP_SIGNATURE", "true"),
        ("AWS_ALLOW_HTTP", "1"),
    ]);
    assert!(!unsigned.signed && unsigned.allow_http);
    assert_eq!(unsigned.values, values(&[("AWS_ACCESS_KEY_ID", "x")]));
    assert!(!read(&[("AWS_ALLOW_HTTP", "no")]).allow_http);
}

#[test]
fn the_environment_is_taken_by_name() {
    let variable = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" => Some("key".to_owned()),
        "AWS_METADATA_ENDPOINT" | "AWS_BUCKET" => Some("x".to_owned()),
        "AWS_REGION" => Some(String::new()),
        _ => None,
    };
    assert_eq!(
        of_machine(Kind::S3, &variable),
        Ok(values(&[("AWS_ACCESS_KEY_ID", "key")]))
    );
}

#[test]
fn an_error_shows_no_secret() {
    let options = Options::read(
        Kind::S3,
        values(&[("AWS_SECRET_ACCESS_KEY", "hunter22"), ("AWS_REGION", "eu")]),
        String::new(),
    );
    assert_eq!(
        options.without_secrets("eu: hunter22 is wrong\nmore"),
        "eu: [AWS_SECRET_ACCESS_KEY] is wrong"
    );
    let long = format!("{}hunter22", "x".repeat(MAX_WORDS - 4));
    assert!(!options.without_secrets(&long).contains("hunt"));
}

/// What the cache knows of a container is not what another account has there.
#[test]
fn stores_are_distinguished() {
    let seen = |kind, name, value| {
        Options::read(kind, values(&[(name, value)]), "me".to_owned()).seen_by()
    };
    let account = |name| seen(Kind::Azure, "AZURE_STORAGE_ACCOUNT_NAME", name);
    assert_ne!(account("one"), account("two"));
    let key = |key| seen(Kind::S3, "AWS_SECRET_ACCESS_KEY", key);
    assert_eq!(key("old"), key("new"));
    assert_ne!(key("old"), seen(Kind::S3, "AWS_ENDPOINT_URL", "https://a"));
}
