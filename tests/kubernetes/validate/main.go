// Renders kustomizations and validates every object in them against the published OpenAPI schemas of Kubernetes,
// strictly: an unknown or repeated field is an error, as with `kubectl apply --validate=strict`.
//
//	validate -schemas FOLDER PATH...
//
// FOLDER has the schemas of one version of Kubernetes, as an API server publishes them: api/v1.json, apis/apps/v1.json.
// A path that is a folder with a kustomization is rendered. Any other path is read as a file of manifests. The program
// writes one JSON object to standard output:
//
//	{"PATH": {"objects": [...], "errors": ["Kind/name: what"]}}
//
// The exit status is 0 without errors, 1 with errors, and 2 when validation could not start. The program uses neither
// a cluster nor the network. It links as few libraries as do the job, because all of them are compiled for it.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

type report struct {
	Objects []map[string]any `json:"objects"`
	Errors  []string         `json:"errors"`
}

// goType returns an empty object of the type that the API server, or the operator, decodes this kind into.
func goType(version, kind string) any {
	switch version + " " + kind {
	case "apps/v1 Deployment":
		return &apps.Deployment{}
	case "apps/v1 StatefulSet":
		return &apps.StatefulSet{}
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return &autoscaling.HorizontalPodAutoscaler{}
	case "networking.k8s.io/v1 Ingress":
		return &networking.Ingress{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networking.NetworkPolicy{}
	case "policy/v1 PodDisruptionBudget":
		return &policy.PodDisruptionBudget{}
	case "v1 ConfigMap":
		return &core.ConfigMap{}
	case "v1 Namespace":
		return &core.Namespace{}
	case "v1 Secret":
		return &core.Secret{}
	case "v1 Service":
		return &core.Service{}
	case "monitoring.coreos.com/v1 PrometheusRule":
		return &monitoring.PrometheusRule{}
	case "monitoring.coreos.com/v1 ServiceMonitor":
		return &monitoring.ServiceMonitor{}
	}
	return nil
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

// validate returns the errors of one object.
func validate(all *schemas, content map[string]any) []error {
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	text, err := yaml.Marshal(content)
	if err != nil {
		return []error{err}
	}
	var found []error
	// Objects of the operator have no schema here. Its Go types stand for one.
	if version != "monitoring.coreos.com/v1" {
		found = all.check(version, kind, content)
	}
	// Finds errors beyond the schemas, such as quantities ("64 MiB").
	object := goType(version, kind)
	if object == nil {
		return append(found, fmt.Errorf("goType in main.go does not know %s %s", version, kind))
	}
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		found = append(found, err)
	}
	return found
}

func examine(all *schemas, path string) report {
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
		for _, problem := range validate(all, content) {
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
	folder := flag.String("schemas", "", "the folder of the schemas")
	flag.Parse()
	info, err := os.Stat(*folder)
	if err != nil || !info.IsDir() || flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: validate -schemas FOLDER PATH...", err)
		os.Exit(2)
	}
	all := &schemas{folder: *folder, documents: map[string]map[string]any{}}
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
