// The arguments that all our etcds and kube-apiservers share.

export interface EtcdUrls {
  client: string
  peer: string
  /** Whether it waits for the disk. */
  durable: boolean
}

/** Its data are in `etcd` in its working directory. */
export function etcdArgs({ client, peer, durable }: EtcdUrls): string[] {
  const urls = { 'listen-client-urls': client, 'advertise-client-urls': client, 'listen-peer-urls': peer }
  return [
    ...Object.entries({ ...urls, 'initial-advertise-peer-urls': peer }).map(([flag, value]) => `--${flag}=${value}`),
    '--data-dir=etcd',
    `--initial-cluster=default=${peer}`,
    '--log-level=warn',
    ...(durable ? [] : ['--unsafe-no-fsync']),
  ]
}

export interface ApiserverPlace {
  /** URL. */
  etcd: string
  address: string
  port: number
  serviceCidr: string
}

/** Its keys and certificates are in `pki` in its working directory. */
export function apiserverArgs({ etcd, address, port, serviceCidr }: ApiserverPlace): string[] {
  return [
    `--etcd-servers=${etcd}`,
    `--bind-address=${address}`,
    `--secure-port=${port}`,
    '--tls-cert-file=pki/server.crt',
    '--tls-private-key-file=pki/server.key',
    '--client-ca-file=pki/ca.crt',
    '--service-account-key-file=pki/service-accounts.pub',
    '--service-account-signing-key-file=pki/service-accounts.key',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-cluster-ip-range=${serviceCidr}`,
    '--profiling=false',
  ]
}
