// How the nameserver in a member answers: each pod sees the Services of its own logical cluster under their usual names.
//
// Two ways lead to the same Services. Relative names come with a search domain `ID.kcp` that names the logical cluster:
// a view lets only pods of that logical cluster use it, a rewrite makes `web.shop.ID.kcp` the Service `web` in the
// member's namespace `ID-shop`, and what does not exist is NXDOMAIN, which musl needs to go on to the next name. Absolute
// names say nothing of the tenant: there the source pod's namespace does, by a template. A template can't tell NXDOMAIN
// from no data, so an absolute name that does not exist has an alias and no address.
import type { SyncerAddress } from './nameserver-objects.ts'

/** Last label of names that carry an id; never asked of anybody else. */
export const tenantZone = 'kcp'

export interface CorefileOptions {
  readonly apiAddress: SyncerAddress
  /** Default 53. */
  readonly port?: number
  /** Where names outside of the cluster are asked. Default the node's own resolvers. */
  readonly forward?: string
  /** For a nameserver outside of its cluster: flags of the kubernetes plugin such as `kubeconfig FILE`. */
  readonly kubernetes?: string
  /** Where its readiness is told. Default `:8181`; empty: nowhere. */
  readonly ready?: string
}

const id = '[a-z][a-z2-7]{9}'
const label = '[^.]+'

/** The Corefile. The same text gives the same answers for any number of logical clusters: nothing reloads for a new one. */
export function corefile({
  apiAddress,
  port = 53,
  forward = '/etc/resolv.conf',
  kubernetes = '',
  ready = ':8181',
}: CorefileOptions): string {
  const services = `kubernetes ${tenantZone} {
        pods verified
        ttl 5
        ${kubernetes}
    }`
  return `# Relative names of a pod's own logical cluster: NAME.NAMESPACE.ID.${tenantZone} and its longer forms.
${tenantZone}:${port} {
    metadata
    view own {
        expr metadata('kubernetes/client-namespace') != '' && name() endsWith ('.' + split(metadata('kubernetes/client-namespace'), '-')[0] + '.${tenantZone}.')
    }
    errors
    ${apiTemplate(apiAddress, `^kubernetes[.]${id}-default[.]svc[.]${tenantZone}[.]$`, tenantZone)}
    rewrite stop {
        name regex ^(.+)[.](${label})[.]svc[.]cluster[.]local[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    rewrite stop {
        name regex ^(.+)[.](${label})[.]svc[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    rewrite stop {
        name regex ^(.+)[.](${label})[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    ${services}
}

# The same zone asked by anybody else, and the target of absolute names.
${tenantZone}:${port} {
    metadata
    errors
    view inside {
        expr metadata('kubernetes/client-namespace') != '' && name() matches ('[.]' + split(metadata('kubernetes/client-namespace'), '-')[0] + '-[^.]+[.]svc[.]${tenantZone}[.]$')
    }
    ${services}
}
${tenantZone}:${port} {
    template ANY ANY {
        rcode NXDOMAIN
    }
}

# Absolute names: the source pod's namespace tells the logical cluster.
cluster.local:${port} {
    metadata
    errors
    ${apiTemplate(apiAddress, '^kubernetes[.]default[.]svc[.]cluster[.]local[.]$', 'cluster.local')}
    template ANY ANY cluster.local {
        match ^(?P<service>.+)[.](?P<namespace>${label})[.]svc[.]cluster[.]local[.]$
        answer "{{ .Name }} 5 IN CNAME {{ .Group.service }}.{{ slice (.Meta \\"kubernetes/client-namespace\\") 0 10 }}-{{ .Group.namespace }}.svc.${tenantZone}."
        fallthrough
    }
    ${services}
    template ANY ANY {
        rcode NXDOMAIN
    }
}

# Everything else.
.:${port} {
    errors
    ${ready === '' ? '' : `ready ${ready}`}
    cache 30
    forward . ${forward}
}
`
}

/** `kubernetes.default` is the API of the pod's logical cluster. */
function apiTemplate({ host }: SyncerAddress, match: string, zone: string): string {
  const address = /^[0-9.]+$/.test(host) ? `A ${host}` : `CNAME ${host}.`
  return `template ANY ANY ${zone} {
        match ${match}
        answer "{{ .Name }} 5 IN ${address}"
        fallthrough
    }`
}
