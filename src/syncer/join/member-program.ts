// What the programs of kcp in a member have in common: small containers without rights on their node, spread over nodes.

interface MemberProgram {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[]
  /** Port of /readyz and /livez. */
  readonly healthPort: number
  readonly readySeconds: number
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

/** The container of a program; `readySeconds` is the time between two checks of its readiness. */
export function programContainer({ healthPort, readySeconds, ...program }: MemberProgram): object {
  return {
    ...program,
    resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '512Mi' } },
    readinessProbe: { httpGet: { path: '/readyz', port: healthPort }, periodSeconds: readySeconds },
    livenessProbe: { httpGet: { path: '/livez', port: healthPort }, periodSeconds: 10, failureThreshold: 6 },
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      runAsNonRoot: true,
      runAsUser: 65532,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
  }
}

/** The affinity by which pods with these labels prefer different nodes. */
export function spreadOverNodes(matchLabels: Readonly<Record<string, string>>): object {
  const podAffinityTerm = { labelSelector: { matchLabels }, topologyKey: 'kubernetes.io/hostname' }
  return {
    podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, podAffinityTerm }] },
  }
}
