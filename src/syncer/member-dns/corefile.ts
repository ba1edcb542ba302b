// The configuration of the nameserver in a member: each pod finds the Services of its own logical cluster by their
// usual names.
//
// Relative names get the search domain `ID.kcp` of the logical cluster. A view allows it to pods of this logical
// cluster only, a rewrite maps `web.shop.ID.kcp` to Service `web` in the member's namespace `ID-shop`, and names that
// do not exist are answered NXDOMAIN, which musl needs to try the next search domain. The zone in which Services are
// looked up has a name that no object of Kubernetes can contain: the target of an ExternalName in that zone would be
// resolved without a view, whoever asks. All other targets are asked of this nameserver like any name, by the same pod.
// Absolute names do not contain the logical cluster: a template takes it from the namespace of the asking pod. A pod
// whose address the nameserver does not know yet gets no answer: a program that is told that its names do not exist
// would end. A template cannot answer NXDOMAIN for a missing Service, so an absolute name that does not exist has a
// CNAME without an address.
//
// `kube-dns.kube-system`, which charts write into configurations of resolvers, is this nameserver.
//
// Exported Services have names in `clusterset.local` besides. A second Service, whose name has a prefix, exists while a
// Service is exported; names of the cluster set lead to it. `web-0.west.db.shop.svc.clusterset.local` is a pod in
// member `west`: in that member the exported Service itself knows its hostname, elsewhere the second one has it as
// `web-0--west`.
import { isIP } from 'node:net'
import {
  clusterSetPrefix,
  clusterSetZone,
  memberParts,
  shortenings,
  systemNamespace,
  tenantZone,
  type Shortening,
} from '#crds/index.ts'
import type { SyncerAddress } from './nameserver-objects.ts'

/** The zone in which Services are looked up. Responses have tenantZone instead. */
const servicesZone = `_${tenantZone}`

export interface CorefileOptions {
  readonly apiAddress: SyncerAddress
  /** The name of the member: names of its own pods in the cluster set contain it. */
  readonly memberName: string
  /** Default 53. */
  readonly port?: number
  /** Resolver for names outside of the cluster. Default: those of the node. */
  readonly forward?: string
  /** Options of the kubernetes plugin, such as `kubeconfig FILE` for a nameserver outside of its cluster. */
  readonly kubernetes?: string
  /** Address of the readiness check. Default `:8181`; empty: none. */
  readonly ready?: string
}

const id = '[a-z][a-z2-7]{9}'
/** The pattern of the labels before the name of a Service in queries for SRV records. */
const portLabels = '((?:_[^.]+[.]_[^.]+[.])?)'
/** This nameserver, which is the DNS of every logical cluster. */
const ownService = `${memberParts.nameserver}.${systemNamespace}.svc.${tenantZone}.`
/**
 * The last rewrite before Services are looked up. It is undone in all names of the answer, such as targets of SRV
 * records.
 */
const intoServices = `rewrite stop {
        name suffix .${tenantZone}. .${servicesZone}. answer auto
    }`
const label = '[^.]+'
const zonePattern = clusterSetZone.replaceAll('.', '[.]')

/** The Corefile. It does not depend on which logical clusters exist, so a new one needs no reload. */
export function corefile({
  apiAddress,
  memberName,
  port = 53,
  forward = '/etc/resolv.conf',
  kubernetes = '',
  ready = ':8181',
}: CorefileOptions): string {
  const services = `kubernetes ${servicesZone} {
        pods verified
        ttl 5
        ${kubernetes}
    }`
  const ownApi = apiTemplate(apiAddress, `^kubernetes[.]${id}-default[.]svc[.]${servicesZone}[.]$`, servicesZone)
  return `# A pod is known by its address a moment after it starts. Until then it gets no answer, and its resolver asks again.
${tenantZone}:${port} cluster.local:${port} ${clusterSetZone}:${port} {
    metadata
    view unknown {
        expr metadata('kubernetes/client-namespace') == ''
    }
    acl {
        drop net *
    }
    kubernetes ${servicesZone} {
        pods verified
        noendpoints
        ${kubernetes}
    }
}

# Relative names of a pod's own logical cluster: NAME.NAMESPACE.ID.${tenantZone} and its longer forms.
${tenantZone}:${port} {
    metadata
    view own {
        expr metadata('kubernetes/client-namespace') != '' && name() endsWith ('.' + split(metadata('kubernetes/client-namespace'), '-')[0] + '.${tenantZone}.')
    }
    errors
    ${ownApi}
    rewrite continue {
        name regex ^${portLabels}kube-dns[.]kube-system(?:[.]svc(?:[.]cluster[.]local)?)?[.]${id}[.]${tenantZone}[.]$ {1}${ownService} answer auto
    }
    ${clusterSetNames(memberName)
      .map(([match, target]) => relativeName(match, target))
      .join('\n    ')}
    ${shortenings.map(relativeLongName).join('\n    ')}
    rewrite continue {
        name regex ^(.+)[.](${label})[.]svc[.]cluster[.]local[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    rewrite continue {
        name regex ^(.+)[.](${label})[.]svc[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    rewrite continue {
        name regex ^(.+)[.](${label})[.](${id})[.]${tenantZone}[.]$ {1}.{3}-{2}.svc.${tenantZone}. answer auto
    }
    ${intoServices}
    ${services}
}

# The same zone asked by anybody else, and the target of absolute names.
${tenantZone}:${port} {
    metadata
    errors
    view inside {
        expr metadata('kubernetes/client-namespace') != '' && name() matches ('[.]' + split(metadata('kubernetes/client-namespace'), '-')[0] + '-[^.]+[.]svc[.]${tenantZone}[.]$|^${portLabels}${ownService.replaceAll('.', '[.]')}$')
    }
    ${intoServices}
    ${services}
}
${tenantZone}:${port} {
    template ANY ANY {
        rcode NXDOMAIN
    }
}

# A pod finds its own name in /etc/hosts, and there the namespace has its name in the member: NAME.SUBDOMAIN.ID-NAMESPACE.
cluster.local:${port} {
    metadata
    errors
    view hosts {
        expr metadata('kubernetes/client-namespace') != '' && name() matches ('[.]' + split(metadata('kubernetes/client-namespace'), '-')[0] + '-[^.]+[.]svc[.]cluster[.]local[.]$')
    }
    ${ownApi}
    rewrite continue {
        name regex ^(.+)[.]svc[.]cluster[.]local[.]$ {1}.svc.${tenantZone}. answer auto
    }
    ${intoServices}
    ${services}
}

# Absolute names: the source pod's namespace tells the logical cluster. Aliases are followed for addresses only: to a question for ports
# the answer is that the name does not exist, and resolvers go on with the search domains.
cluster.local:${port} ${clusterSetZone}:${port} {
    metadata
    errors
    template ANY SRV {
        rcode NXDOMAIN
    }
    ${apiTemplate(apiAddress, '^kubernetes[.]default[.]svc[.]cluster[.]local[.]$', 'cluster.local')}
    template ANY ANY cluster.local {
        match ^(?P<port>${portLabels.slice(1, -1)})kube-dns[.]kube-system[.]svc[.]cluster[.]local[.]$
        answer "{{ .Name }} 5 IN CNAME {{ .Group.port }}${ownService}"
        fallthrough
    }
    ${shortenings.map(absoluteLongName).join('\n    ')}
    template ANY ANY cluster.local {
        match ^(?P<service>.+)[.](?P<namespace>${label})[.]svc[.]cluster[.]local[.]$
        answer "{{ .Name }} 5 IN CNAME {{ .Group.service }}.{{ slice (.Meta \\"kubernetes/client-namespace\\") 0 10 }}-{{ .Group.namespace }}.svc.${tenantZone}."
        fallthrough
    }
    ${clusterSetNames(memberName)
      .map(([match, target]) => absoluteName(match, target))
      .join('\n    ')}
    ${services}
    template ANY ANY {
        rcode NXDOMAIN
    }
}

# The member's DNS would answer names of Services and pods of every tenant for their addresses.
in-addr.arpa:${port} ip6.arpa:${port} {
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

/** The rewrite for namespaces whose names have one length that is too long for members, where they are shortened. */
function relativeLongName({ begin, omitted, end, mark }: Shortening): string {
  const namespace = `([^.]{${begin}})[^.]{${omitted}}([^.]{${end}})`
  return `rewrite continue {
        name regex ^(.+)[.]${namespace}(?:[.]svc(?:[.]cluster[.]local)?)?[.](${id})[.]${tenantZone}[.]$ {1}.{4}-{2}${mark}{3}.svc.${tenantZone}. answer auto
    }`
}

function absoluteLongName({ begin, omitted, end, mark }: Shortening): string {
  return `template ANY ANY cluster.local {
        match ^(?P<service>.+)[.](?P<begin>[^.]{${begin}})[^.]{${omitted}}(?P<end>[^.]{${end}})[.]svc[.]cluster[.]local[.]$
        answer "{{ .Name }} 5 IN CNAME {{ .Group.service }}.{{ slice (.Meta \\"kubernetes/client-namespace\\") 0 10 }}-{{ .Group.begin }}${mark}{{ .Group.end }}.svc.${tenantZone}."
        fallthrough
    }`
}

/** `kubernetes.default` is the API of the pod's logical cluster. */
function apiTemplate({ host }: SyncerAddress, match: string, zone: string): string {
  const address = ({ 4: `A ${host}`, 6: `AAAA ${host}` } as const)[isIP(host)] ?? `CNAME ${host}.`
  return `template ANY ANY ${zone} {
        match ${match}
        answer "{{ .Name }} 5 IN ${address}"
        fallthrough
    }`
}

/**
 * Patterns of names in the cluster set, without the zone, and the names of a namespace in the member that they lead to.
 */
function clusterSetNames(memberName: string): [match: string, target: string][] {
  const host = '[^_.][^.]*'
  const member = memberName.replaceAll('.', '[.]')
  return [
    [`(?P<port>(?:_[^.]+[.]_[^.]+[.])?)(?P<service>${label})`, `{port}${clusterSetPrefix}{service}`],
    [`(?P<host>${host})[.]${member}[.](?P<service>${label})`, '{host}.{service}'],
    [
      `(?P<host>${host})[.](?P<member>${label})[.](?P<service>${label})`,
      `{host}--{member}.${clusterSetPrefix}{service}`,
    ],
  ]
}

/** A rewrite knows groups by their numbers. */
function relativeName(match: string, target: string): string {
  const names = [...match.matchAll(/\(\?P<(\w+)>/g)].map(([, name = '']) => name)
  const numbered = target.replaceAll(/\{(\w+)\}/g, (_, name: string) => `{${names.indexOf(name) + 1}}`)
  const [namespace, cluster] = [names.length + 1, names.length + 2]
  const groups = match.replaceAll(/\(\?P<\w+>/g, '(')
  return `rewrite continue {
        name regex ^${groups}[.](${label})[.]svc[.]${zonePattern}[.](${id})[.]${tenantZone}[.]$ ${numbered}.{${cluster}}-{${namespace}}.svc.${tenantZone}. answer auto
    }`
}

function absoluteName(match: string, target: string): string {
  const filled = target.replaceAll(/\{(\w+)\}/g, '{{ .Group.$1 }}')
  return `template ANY ANY ${clusterSetZone} {
        match ^${match}[.](?P<namespace>${label})[.]svc[.]${zonePattern}[.]$
        answer "{{ .Name }} 5 IN CNAME ${filled}.{{ slice (.Meta \\"kubernetes/client-namespace\\") 0 10 }}-{{ .Group.namespace }}.svc.${tenantZone}."
        fallthrough
    }`
}
