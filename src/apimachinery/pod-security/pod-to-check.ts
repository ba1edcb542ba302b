// The fields of a pod, or of a pod template, that the Pod Security Standards check.

export interface PodToCheck {
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> } | undefined
  readonly spec: PodSpecToCheck
}

export interface PodSpecToCheck {
  readonly hostNetwork?: boolean
  readonly hostPID?: boolean
  readonly hostIPC?: boolean
  readonly os?: { readonly name?: string }
  readonly volumes?: readonly VolumeToCheck[]
  readonly securityContext?: SecurityContextToCheck & { readonly sysctls?: readonly { readonly name?: string }[] }
  readonly initContainers?: readonly ContainerToCheck[]
  readonly containers?: readonly ContainerToCheck[]
  readonly ephemeralContainers?: readonly ContainerToCheck[]
}

/** A volume: its name, and its source under the name of the source's type. */
export type VolumeToCheck = { readonly name?: string } & Readonly<Record<string, unknown>>

export interface ContainerToCheck {
  readonly name?: string
  readonly ports?: readonly { readonly hostPort?: number }[]
  readonly livenessProbe?: HandlerToCheck
  readonly readinessProbe?: HandlerToCheck
  readonly startupProbe?: HandlerToCheck
  readonly lifecycle?: { readonly postStart?: HandlerToCheck; readonly preStop?: HandlerToCheck }
  readonly securityContext?: ContainerSecurityContextToCheck
}

export interface HandlerToCheck {
  readonly httpGet?: { readonly host?: string }
  readonly tcpSocket?: { readonly host?: string }
}

export interface SecurityContextToCheck {
  readonly runAsNonRoot?: boolean
  readonly runAsUser?: number
  readonly appArmorProfile?: { readonly type?: string }
  readonly seccompProfile?: { readonly type?: string }
  readonly seLinuxOptions?: { readonly type?: string; readonly user?: string; readonly role?: string }
  readonly windowsOptions?: { readonly hostProcess?: boolean }
}

export interface ContainerSecurityContextToCheck extends SecurityContextToCheck {
  readonly privileged?: boolean
  readonly allowPrivilegeEscalation?: boolean
  readonly procMount?: string
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] }
}
