// Levels and versions of the Pod Security Standards, as in the labels pod-security.kubernetes.io/* of namespaces.

export const podSecurityLevels = ['privileged', 'baseline', 'restricted'] as const
export type PodSecurityLevel = (typeof podSecurityLevels)[number]

/** `latest`, or the minor version of Kubernetes that defines the policy: 24 for `v1.24`. */
export type PodSecurityVersion = 'latest' | number

export interface PodSecurityPolicy {
  readonly level: PodSecurityLevel
  /** Default latest. */
  readonly version?: PodSecurityVersion
}

/** The level of this name; undefined for other texts, which kube-apiserver refuses with `must be one of ...`. */
export function tryPodSecurityLevel(text: string): PodSecurityLevel | undefined {
  return podSecurityLevels.find((level) => level === text)
}

/**
 * The version `latest` or `v1.N`; undefined for other texts, which kube-apiserver refuses with `must be "latest" or
 * "v1.x"`.
 */
export function tryPodSecurityVersion(text: string): PodSecurityVersion | undefined {
  if (text === 'latest') return 'latest'
  const minor = /^v1\.([0-9]|[1-9][0-9]*)$/.exec(text)?.[1]
  return minor === undefined ? undefined : Number(minor)
}

/** `LEVEL:VERSION`, as in the messages of kube-apiserver. */
export function podSecurityPolicyText({ level, version = 'latest' }: PodSecurityPolicy): string {
  return `${level}:${version === 'latest' ? version : `v1.${version}`}`
}
