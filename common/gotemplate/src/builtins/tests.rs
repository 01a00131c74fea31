use serde_json::json;

use crate::value::Value;
use crate::{TemplateFile, TemplateOptions, render};

/// The output of Go 1.26 for these templates, where `.l2` was a []string.
const OF_GO: &[(&str, &str)] = &[
    (
        r##"{{ printf "%6.2f|%-10.3e|%+g|%08.3f|% f" 1.555 1234.5678 2.0 -3.14159 2.5 }}"##,
        "  1.55|1.235e+03 |+2|-003.142| 2.500000",
    ),
    (
        r##"{{ printf "%.3g|%.10g|%.1g|%.0f|%.0e|%g|%G|%E" 1234.5678 1234.5678 0.00001234 2.5 15.0 1e-7 1e-7 1e21 }}"##,
        "1.23e+03|1234.5678|1e-05|2|2e+01|1e-07|1E-07|1.000000E+21",
    ),
    (
        r##"{{ printf "%.3g|%.6g|%.7g|%.3g|%.2g" 100000.0 1000000.0 1000000.0 999.9 0.0001 }}"##,
        "1e+05|1e+06|1000000|1e+03|0.0001",
    ),
    (
        r##"{{ printf "%g|%g|%g|%g|%v" 123456.0 1234567.0 0.0001 0.00001 100000.0 }}"##,
        "123456|1.234567e+06|0.0001|1e-05|100000",
    ),
    (
        r##"{{ printf "%5t|%-7t|%q|%x|%X" true false 'a' 255 255 }}"##,
        " true|false  |'a'|ff|FF",
    ),
    (
        r##"{{ printf "%#x|%#X|%#o|%#b|%O|%+d|%x" 255 255 8 5 8 7 -255 }}"##,
        "0xff|0XFF|010|0b101|0o10|+7|-ff",
    ),
    (
        r##"{{ printf "%08b|%.5d|%8.5d|%-8.5d|%+08d|%x" 5 42 42 42 42 "hi" }}"##,
        "00000101|00042|   00042|00042   |+0000042|6869",
    ),
    (
        r##"{{ printf "%#q|%+q|%#U|%U|%c|%10c|%-5c|" "a`b" "é" 'é' 233 9731 'x' 'y' }}"##,
        "\"a`b\"|\"\\u00e9\"|U+00E9 'é'|U+00E9|☃|         x|y    |",
    ),
    (
        r##"{{ printf "% x|% X|%#x|%# x|%.2x|%8x" "abc" "abc" "abc" "abc" "abc" "ab" }}"##,
        "61 62 63|61 62 63|0x616263|0x61 0x62 0x63|6162|    6162",
    ),
    (
        r##"{{ printf "%[3]v %[1]v %v|%[5]d|%[x]d|%[1]" 1 2 3 }}"##,
        "3 1 2|%!d(BADINDEX)|%!d(BADINDEX)|%!(NOVERB)",
    ),
    (
        r##"{{ printf "%*d|%-*d|%.*f|%[2]*[1]d" 5 42 4 7 2 1.239 }}"##,
        "   42|7   |1.24|                                         5",
    ),
    (
        r##"{{ printf "%*d|%.*d" "x" 1 -3 2 }}"##,
        "%!(BADWIDTH)1|%!(BADPREC)2",
    ),
    (
        r##"{{ printf "%!|%z|%-|%.|%5" 1 2 3 }}"##,
        "%!!(int=1)|%!z(int=2)|%!|(int=3)%!|(MISSING)%!(NOVERB)",
    ),
    (
        r##"{{ printf "%d %s" 1 }}|{{ printf "%d" }}|{{ printf "x" 1 nil "a" }}"##,
        "1 %!s(MISSING)|%!d(MISSING)|x%!(EXTRA int=1, <nil>, string=a)",
    ),
    (
        r##"{{ printf "%d|%s|%v|%5v|%T|%t" nil nil nil nil nil nil }}"##,
        "%!d(<nil>)|%!s(<nil>)|<nil>|<nil>|<nil>|%!t(<nil>)",
    ),
    (
        r##"{{ printf "%v|%+v|%#v|%d|%s" .m .m .m .m .m }}"##,
        "map[a:x b:1 l:[1.5]]|map[a:x b:1 l:[1.5]]|map[string]interface {}{\"a\":\"x\", \"b\":1, \"l\":[]interface {}{1.5}}|map[%!d(string=a):%!d(string=x) %!d(string=b):1 %!d(string=l):[%!d(float64=1.5)]]|map[a:x b:%!s(int64=1) l:[%!s(float64=1.5)]]",
    ),
    (
        r##"{{ printf "%v|%#v|%d|%q|%5d|%x" .l .l .l .l .l .l }}"##,
        "[1 a <nil>]|[]interface {}{1, \"a\", interface {}(nil)}|[1 %!d(string=a) <nil>]|['\\x01' \"a\" <nil>]|[    1 %!d(string=    a) <nil>]|[1 61 <nil>]",
    ),
    (
        r##"{{ printf "%v|%.2f|%8.1f|%+v|%g" 1.5i 2.25i 1+2i 1-2i 3.5i }}"##,
        "(0+1.5i)|(0.00+2.25i)|(     1.0    +2.0i)|(1-2i)|(0+3.5i)",
    ),
    (
        r##"{{ printf "%s|%d|%x|%v" true true true 1.5 }}|{{ printf "%d" 1.5 }}|{{ printf "%s" 1.5 }}"##,
        "%!s(bool=true)|%!d(bool=true)|%!x(bool=true)|1.5|%!d(float64=1.5)|%!s(float64=1.5)",
    ),
    (
        r##"{{ printf "%6s|%-6s|%06s|%.3s|%6.2s|" "日本語" "日本語" "日本語" "日本語語" "日本語" }}"##,
        "   日本語|日本語   |000日本語|日本語|    日本|",
    ),
    (
        r##"{{ printf "%q|%q|%q" "\a\b\x00\x7f" "\u200b\u00a0" "\U0001f600\u0301" }}"##,
        "\"\\a\\b\\x00\\x7f\"|\"\\u200b\\u00a0\"|\"😀́\"",
    ),
    (
        r##"{{ printf "%v %v %v" 1e20 1e21 123456789.0 }}{{ print 0.1 -0.0 1e6 }}"##,
        "1e+20 1e+21 1.23456789e+080.1 -0 1e+06",
    ),
    (
        r##"{{ printf "%05d|%-05d|%+05d|% 05d|%x" -42 42 42 42 .l2 }}"##,
        "-0042|42   |+0042| 0042|[61 62]",
    ),
    (
        r##"{{ print 1 2 "a" nil nil "b" true }}{{ println 1 "a" nil }}"##,
        "1 2a<nil> <nil>btrue1 a <nil>\n",
    ),
    (
        r##"{{ html nil 1 "<" }}|{{ js "é\u00a0\u2028=&" }}|{{ urlquery "ü /?~*'" 1 2 }}"##,
        "&lt;no value&gt;1&lt;|é\\u00A0\\u2028\\u003D\\u0026|%C3%BC+%2F%3F~%2A%271+2",
    ),
    (
        r##"{{ 0x1p-2 }} {{ 0x1.8p3 }} {{ 1_0.5e0_1 }} {{ 0b1_01 }} {{ 0o1_7 }} {{ 0x_1F }} {{ 0777 }} {{ '\x41' }} {{ '\'' }} {{ 1e3i }}"##,
        "0.25 12 105 5 15 31 511 65 39 (0+1000i)",
    ),
    (
        r##"{{ le 1 2 }}{{ lt 1.5 2.5 }}{{ ge "b" "a" }}{{ eq .m.k nil }}{{ eq nil nil }}{{ ne 1 2 }}{{ gt 'a' 96 }}"##,
        "truetruetruetruetruetruetrue",
    ),
    (
        r##"{{ index "é" 0 }} {{ len "é" }} {{ slice "héllo" 0 1 }} {{ slice .l 1 2 3 }} {{ index .m "l" 0 }}"##,
        "195 2 h [a] 1.5",
    ),
    (
        r##"{{ range $i, $c := .l }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $i }}{{ end }}{{ $x := 1 }}{{ range $x = .l }}{{ end }}{{ $x }}"##,
        "02<no value>",
    ),
];

#[test]
fn functions_print_what_go_prints() {
    let data = json!({"m": {"b": 1, "a": "x", "l": [1.5]}, "l": [1, "a", null], "l2": ["a", "b"]});
    let data = Value::try_from(&data).unwrap();
    let mut wrong = Vec::new();
    for (text, expect) in OF_GO {
        let template = TemplateFile { name: "t", text };
        let rendered = render(&[template], data.clone(), &TemplateOptions::default());
        let found = rendered.map_or_else(|error| error.to_string(), |rendered| rendered.text);
        if found != *expect {
            wrong.push(format!("{text}\n  {found}\n  {expect}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Go takes widths and precisions up to a million.
#[test]
fn large_widths_and_precisions_are_filled_up() {
    // A format, its argument, and the result without the zeros or blanks that pad it.
    for (format, argument, filler, left) in [
        ("%0NUMBERd", "7", '0', "7"),
        ("%NUMBERd", "7", ' ', "7"),
        ("%.NUMBERd", "-7", '0', "-7"),
        ("%0NUMBERs", "\"a\"", '0', "a"),
        ("%.NUMBERU", "65", '0', "U+41"),
        ("%0NUMBERf", "-1.5", '0', "-1.5"),
        ("%.NUMBERf", "1.5", '0', "1.5"),
        ("%.NUMBERe", "1.5", '0', "1.5e+"),
        ("%.NUMBERE", "1.5", '0', "1.5E+"),
        ("%.NUMBERg", "1.5", '0', "1.5"),
        ("%.NUMBERg", "1e-10", '0', ""),
    ] {
        for number in [65_536, 1_000_000] {
            let format = format.replace("NUMBER", &number.to_string());
            let text = format!("{{{{ printf \"{format}\" {argument} }}}}");
            let template = TemplateFile {
                name: "t",
                text: &text,
            };
            let rendered = render(&[template], Value::Nil, &TemplateOptions::default()).unwrap();
            let found = rendered.text;
            let rest: String = found.chars().filter(|c| *c != filler).collect();
            let is_general = format.ends_with('g');
            assert!(is_general || found.len() >= number, "{format} {argument}");
            assert!(rest.starts_with(left), "{format} {argument}: {rest}");
        }
    }
}
