// The types of @kubernetes/client-node and gaxios that the declarations of @dot-i/k8s-operator name.
export interface KubernetesObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata?: object
}
export interface V1CustomResourceDefinitionVersion {
  readonly name: string
}
export declare class KubeConfig {}
export declare class CoreV1Api {}
export type Headers = Record<string, string>
