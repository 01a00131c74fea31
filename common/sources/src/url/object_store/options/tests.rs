use super::*;

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The crate object_store must know all of these options. An unknown one would be ignored.
#[test]
fn every_option_is_known_to_the_client() {
    for kind in [StoreKind::S3, StoreKind::Google, StoreKind::Azure] {
        for (name, _) in kind.known_options() {
            let name = name.to_ascii_lowercase();
            let known = match kind {
                StoreKind::S3 => name.parse::<object_store::aws::AmazonS3ConfigKey>().is_ok(),
                StoreKind::Google => name.parse::<object_store::gcp::GoogleConfigKey>().is_ok(),
                StoreKind::Azure => name.parse::<object_store::azure::AzureConfigKey>().is_ok(),
            };
            assert!(known, "{name}");
        }
    }
}

#[test]
fn a_secret_names_nothing_of_this_machine() {
    for (kind, name) in [
        (StoreKind::S3, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        (StoreKind::S3, "AWS_METADATA_ENDPOINT"),
        (StoreKind::S3, "AWS_BUCKET"),
        (StoreKind::S3, "aws_access_key_id"),
        (StoreKind::S3, "proxy_url"),
        (StoreKind::Google, "GOOGLE_APPLICATION_CREDENTIALS"),
        (StoreKind::Google, "AWS_ACCESS_KEY_ID"),
        (StoreKind::Azure, "AZURE_FEDERATED_TOKEN_FILE"),
        (StoreKind::Azure, "AZURE_USE_AZURE_CLI"),
    ] {
        let error = check_secret_options(kind, &values(&[(name, "x")])).unwrap_err();
        assert!(error.starts_with(&format!("key {name} is not a known option")));
    }
    assert_eq!(
        check_secret_options(StoreKind::S3, &values(&[("AWS_ACCESS_KEY_ID", "x")])),
        Ok(())
    );
}

#[test]
fn requests_are_signed_with_credentials_only() {
    let read = |pairs| StoreOptions::read(StoreKind::S3, values(pairs), String::new());
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
        machine_options(StoreKind::S3, &variable),
        Ok(values(&[("AWS_ACCESS_KEY_ID", "key")]))
    );
}

#[test]
fn an_error_shows_no_secret() {
    let options = StoreOptions::read(
        StoreKind::S3,
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

/// Cached content of a container must not be used for a container of the same name in another account.
#[test]
fn stores_are_distinguished() {
    let seen = |kind, name, value| {
        StoreOptions::read(kind, values(&[(name, value)]), "me".to_owned()).reader_key()
    };
    let account = |name| seen(StoreKind::Azure, "AZURE_STORAGE_ACCOUNT_NAME", name);
    assert_ne!(account("one"), account("two"));
    let key = |key| seen(StoreKind::S3, "AWS_SECRET_ACCESS_KEY", key);
    assert_eq!(key("old"), key("new"));
    assert_ne!(
        key("old"),
        seen(StoreKind::S3, "AWS_ENDPOINT_URL", "https://a")
    );
}
