// Renders kustomizations and validates every object in them against the published OpenAPI schemas of Kubernetes,
// strictly: an unknown or repeated field is an error, as with `kubectl apply --validate=strict`.
//
//	validate [-versions 1.29,1.30] DIRECTORY...
//
// A directory with a kustomization is rendered. Any other path is read as a file of manifests. The program writes one
// JSON object to standard output:
//
//	{"PATH": {"objects": [...], "errors": ["Kind/name: what"]}}
//
// The exit status is 0 without errors, 1 with errors, and 2 when validation could not start. The program uses neither
// a cluster nor the network.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kubectl-validate/pkg/openapiclient"
	"sigs.k8s.io/kubectl-validate/pkg/validator"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

type report struct {
	Objects []map[string]any `json:"objects"`
	Errors  []string         `json:"errors"`
}

// schemas holds the validator of one version of Kubernetes.
type schemas struct {
	version  string
	check    *validator.Validator
	required *required
}

func load(versions []string) ([]schemas, error) {
	var loaded []schemas
	for _, version := range versions {
		builtin := openapiclient.NewHardcodedBuiltins(version)
		check, err := validator.New(openapiclient.NewOverlay(openapiclient.HardcodedPatchLoader(version), builtin))
		if err != nil {
			return nil, err
		}
		loaded = append(loaded, schemas{version, check,
			&required{client: builtin, schemas: map[schema.GroupVersion]map[string]any{}}})
	}
	return loaded, nil
}

func render(path string) (resmap.ResMap, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		// Allows references between folders (an overlay names its base), but no plug-ins or remote bases.
		return krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	factory := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory())
	return factory.NewResMapFromBytes(text)
}

// joinLines removes the line breaks from the base64 of a Secret, which kustomize wraps. The API server accepts them, as
// any Go program does. The validator does not.
func joinLines(content map[string]any) {
	data, _ := content["data"].(map[string]any)
	for name, value := range data {
		if text, ok := value.(string); ok {
			data[name] = strings.ReplaceAll(text, "\n", "")
		}
	}
}

// validate returns the errors of one object.
func validate(all []schemas, object *resource.Resource, content map[string]any) []error {
	text, err := yaml.Marshal(content)
	if err != nil {
		return []error{err}
	}
	// The object belongs to an operator, not to Kubernetes. The operator's Go types replace the schema.
	if object.GetApiVersion() == "monitoring.coreos.com/v1" && object.GetKind() == "ServiceMonitor" {
		return flatten("", yaml.UnmarshalStrict(text, &monitoring.ServiceMonitor{}))
	}
	if object.GetApiVersion() == "monitoring.coreos.com/v1" && object.GetKind() == "PrometheusRule" {
		return flatten("", yaml.UnmarshalStrict(text, &monitoring.PrometheusRule{}))
	}
	var found []error
	for _, one := range all {
		gvk, parsed, err := one.check.Parse(text)
		if err == nil {
			err = one.check.Validate(parsed)
		}
		found = append(found, flatten(one.version+": ", err)...)
		for _, problem := range one.required.check(gvk, content) {
			found = append(found, flatten(one.version+": ", problem)...)
		}
	}
	// Decodes into the Go types, like the API server. Finds errors beyond the schemas, such as quantities ("64 MiB").
	_, _, err = strict.Decode(text, nil, nil)
	return append(found, flatten("", err)...)
}

// flatten writes each cause of an error on its own line.
func flatten(prefix string, err error) []error {
	if err == nil {
		return nil
	}
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil && len(status.ErrStatus.Details.Causes) > 0 {
		var causes []error
		for _, cause := range status.ErrStatus.Details.Causes {
			causes = append(causes, fmt.Errorf("%s%s: %s", prefix, cause.Field, cause.Message))
		}
		return causes
	}
	return []error{fmt.Errorf("%s%w", prefix, err)}
}

func examine(all []schemas, path string) report {
	result := report{Objects: []map[string]any{}, Errors: []string{}}
	objects, err := render(path)
	if err != nil {
		result.Errors = append(result.Errors, fmt.Sprintf("cannot be rendered: %v", err))
		return result
	}
	for _, object := range objects.Resources() {
		content, err := object.Map()
		if err != nil {
			result.Errors = append(result.Errors, err.Error())
			continue
		}
		if object.GetKind() == "Secret" {
			joinLines(content)
		}
		for _, problem := range validate(all, object, content) {
			result.Errors = append(result.Errors,
				fmt.Sprintf("%s/%s: %v", object.GetKind(), object.GetName(), problem))
		}
		result.Objects = append(result.Objects, content)
	}
	if len(result.Objects) == 0 {
		result.Errors = append(result.Errors, "holds no object")
	}
	return result
}

func main() {
	versions := flag.String("versions", "1.30", "versions of Kubernetes whose schemas count, separated by commas")
	flag.Parse()
	all, err := load(strings.Split(*versions, ","))
	if err != nil || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: validate [-versions 1.30,...] DIRECTORY...", err)
		os.Exit(2)
	}
	reports := map[string]report{}
	status := 0
	for _, path := range flag.Args() {
		reports[path] = examine(all, path)
		if len(reports[path].Errors) > 0 {
			status = 1
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(reports); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(status)
}
