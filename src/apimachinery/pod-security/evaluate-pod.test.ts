import { expect } from 'chai'
import { evaluatePod, podSecurityViolationsText } from './evaluate-pod.ts'
import { podSecurityPolicyText, tryPodSecurityVersion, type PodSecurityPolicy } from './level.ts'
import type { PodSpecToCheck } from './pod-to-check.ts'

const container = (securityContext = {}) => ({ name: 'a', securityContext })
const hardened: PodSpecToCheck = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [container({ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } })],
}

/** Texts as kube-apiserver 1.34.3 answers them. */
const rows: readonly {
  title: string
  policy: PodSecurityPolicy
  spec: PodSpecToCheck
  annotations?: Record<string, string>
  text: string
}[] = [
  {
    title: 'privileged allows everything',
    policy: { level: 'privileged' },
    spec: { hostPID: true, containers: [container({ privileged: true })] },
    text: '',
  },
  {
    title: 'baseline allows an ordinary pod',
    policy: { level: 'baseline' },
    spec: { containers: [container()] },
    text: '',
  },
  {
    title: 'baseline names every problem, in the order of the checks',
    policy: { level: 'baseline' },
    spec: {
      hostNetwork: true,
      hostIPC: true,
      volumes: [{ name: 'host', hostPath: { path: '/' } }],
      initContainers: [{ name: 'init', ports: [{ hostPort: 81 }] }],
      containers: [container({ privileged: true, capabilities: { add: ['SYS_ADMIN', 'BPF'] } })],
    },
    text:
      'non-default capabilities (container "a" must not include "BPF", "SYS_ADMIN" in securityContext.capabilities.add), ' +
      'host namespaces (hostNetwork=true, hostIPC=true), hostPath volumes (volume "host"), ' +
      'hostPort (container "init" uses hostPort 81), ' +
      'privileged (container "a" must not set securityContext.privileged=true)',
  },
  {
    title: 'an AppArmor profile may be switched off in neither way',
    policy: { level: 'baseline' },
    annotations: { 'container.apparmor.security.beta.kubernetes.io/a': 'unconfined' },
    spec: { securityContext: { appArmorProfile: { type: 'Unconfined' } }, containers: [container()] },
    text:
      'forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to "Unconfined", ' +
      '"container.apparmor.security.beta.kubernetes.io/a="unconfined"")',
  },
  {
    title: 'a version has the checks of its time',
    policy: { level: 'baseline', version: 26 },
    spec: {
      securityContext: { sysctls: [{ name: 'net.ipv4.ip_local_reserved_ports' }] },
      containers: [{ name: 'a', livenessProbe: { httpGet: { host: '169.254.169.254' } } }],
    },
    text: 'forbidden sysctls (net.ipv4.ip_local_reserved_ports)',
  },
  {
    title: 'and the latest those of today',
    policy: { level: 'baseline' },
    spec: {
      securityContext: { sysctls: [{ name: 'net.ipv4.ip_local_reserved_ports' }] },
      containers: [{ name: 'a', livenessProbe: { httpGet: { host: '169.254.169.254' } } }],
    },
    text: 'probe or lifecycle host (container "a" uses probe or lifecycle host "169.254.169.254")',
  },
  { title: 'restricted allows a hardened pod', policy: { level: 'restricted' }, spec: hardened, text: '' },
  {
    title: 'restricted requires what hardens',
    policy: { level: 'restricted' },
    spec: { volumes: [{ name: 'n', nfs: { server: 's' } }], containers: [container()] },
    text:
      'allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false), ' +
      'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]), ' +
      'restricted volume types (volume "n" uses restricted volume type "nfs"), ' +
      'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true), ' +
      'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
  },
  {
    title: 'restricted does not require Linux fields of a Windows pod',
    policy: { level: 'restricted' },
    spec: { os: { name: 'windows' }, securityContext: { runAsNonRoot: true }, containers: [container()] },
    text: '',
  },
]

describe('the Pod Security Standards', () => {
  for (const { title, policy, spec, annotations = {}, text } of rows)
    it(title, () => {
      expect(podSecurityViolationsText(evaluatePod(policy, { metadata: { annotations }, spec }))).to.equal(text)
    })

  it('read and print versions as labels have them', () => {
    expect(['latest', 'v1.0', 'v1.34', 'v1.01', '1.34', 'v2.1', ''].map(tryPodSecurityVersion)).to.deep.equal([
      'latest',
      0,
      34,
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    expect(podSecurityPolicyText({ level: 'baseline', version: 34 })).to.equal('baseline:v1.34')
    expect(podSecurityPolicyText({ level: 'restricted' })).to.equal('restricted:latest')
  })
})
