// Command peer renders add-ons with Go's text/template and sprig, beside which our engine is measured.
//
//	peer TIMES DATA FOLDER…
//
// It prints the sha256 of what each folder renders to, as the last of TIMES renderings made it. Of KKP's own functions
// and types it has what the add-ons of the benchmark need.
package main

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/Masterminds/semver/v3"
	"github.com/Masterminds/sprig/v3"
	"github.com/distribution/reference"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: peer TIMES DATA FOLDER…")
	}
	times, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	document, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	data, err := read(document)
	if err != nil {
		return err
	}
	packages := make([][]string, 0, len(args))
	for _, folder := range args[2:] {
		files, err := load(folder)
		if err != nil {
			return err
		}
		packages = append(packages, files)
	}
	for round := 1; round <= times; round++ {
		for i, files := range packages {
			text, err := render(files, data)
			if err != nil {
				return fmt.Errorf("%s: %w", args[2+i], err)
			}
			if round == times {
				fmt.Printf("%x  %s\n", sha256.Sum256(text), filepath.Base(args[2+i]))
			}
		}
	}
	return nil
}

// load reads the templates of a folder in walk order.
func load(folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, string(text))
		return err
	})
	return files, err
}

// render parses each file by itself, as KKP does for the sake of its errors, and then executes all of them as one.
func render(files []string, data any) ([]byte, error) {
	functions := sprig.TxtFuncMap()
	functions["Image"] = image
	functions["join"] = strings.Join
	functions["semverCompare"] = compare
	addon := template.New("addon").Funcs(functions)
	var joined strings.Builder
	for _, text := range files {
		if _, err := addon.Parse(text); err != nil {
			return nil, err
		}
		joined.WriteString(text + "\n\n---\n\n")
	}
	if _, err := addon.Parse(joined.String()); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := addon.Execute(&out, data)
	return out.Bytes(), err
}

func image(name string) (string, error) {
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return "", err
	}
	return named.String(), nil
}

func compare(version *semver.Version, constraint string) bool {
	parsed, err := semver.NewConstraint(constraint)
	return err == nil && parsed.Check(version)
}

// features is KKP's set of names.
type features []string

// Has says whether a name is in the set.
func (f features) Has(name string) bool { return slices.Contains(f, name) }

// allocation is what an address pool gave a cluster.
type allocation struct {
	Type, CIDR string
	Addresses  []string
}

// network has the fields in the order in which KKP hashes them.
type network struct {
	DNSDomain, DNSClusterIP, DNSResolverIP string
	PodCIDRBlocks, ServiceCIDRBlocks       []string
	ProxyMode                              string
	StrictArp                              *bool
	DualStack                              bool
	PodCIDRIPv4, PodCIDRIPv6               string
	NodeCIDRMaskSizeIPv4                   int
	NodeCIDRMaskSizeIPv6                   int
	IPAMAllocations                        map[string]allocation
	NodePortRange                          string
}

// ConfigHash changes whenever a field does.
func (n network) ConfigHash() (string, error) {
	slices.Sort(n.PodCIDRBlocks)
	slices.Sort(n.ServiceCIDRBlocks)
	text, err := json.Marshal(n)
	sum := sha1.Sum(text)
	return hex.EncodeToString(sum[:]), err
}

// read makes KKP's types of a document where templates can tell them from maps.
func read(document []byte) (map[string]any, error) {
	var typed struct {
		Cluster struct {
			Version  string
			Features features
			Network  network
		}
	}
	var data map[string]any
	if err := json.Unmarshal(document, &typed); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(document, &data); err != nil {
		return nil, err
	}
	version, err := semver.NewVersion(typed.Cluster.Version)
	if err != nil {
		return nil, err
	}
	cluster, ok := data["Cluster"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("Cluster is no map")
	}
	cluster["Version"] = version
	cluster["Features"] = typed.Cluster.Features
	cluster["Network"] = typed.Cluster.Network
	return data, nil
}
