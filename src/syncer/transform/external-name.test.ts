import { expect } from 'chai'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { externalNameDown } from './external-name.ts'

const id = clusterIdOf('uid of acme')
const other = clusterIdOf('uid of bob')

describe('the target of an ExternalName on its way into a member', () => {
  for (const { name, down } of [
    { name: 'api.example.com', down: 'api.example.com' },
    { name: 'api.example.com.', down: 'api.example.com.' },
    { name: 'example.com', down: 'example.com.' },
    { name: 'kcp.example.com', down: 'kcp.example.com' },
    { name: 'notkcp', down: 'notkcp.' },
    { name: 'web.shop.svc.cluster.local', down: `web.${id}-shop.svc.cluster.local` },
    { name: 'web.shop.svc.cluster.local.', down: `web.${id}-shop.svc.cluster.local` },
    { name: 'Web.Shop.SVC.Cluster.Local', down: `Web.${id}-Shop.SVC.cluster.local` },
    { name: 'db-0.db.shop.svc.cluster.local', down: `db-0.db.${id}-shop.svc.cluster.local` },
    { name: `web.${other}-shop.svc.cluster.local`, down: `web.${id}-${other}-shop.svc.cluster.local` },
    { name: '10-0-0-1.kube-system.pod.cluster.local', down: `10-0-0-1.${id}-kube-system.pod.cluster.local` },
    { name: 'kubernetes.default.svc.cluster.local', down: `kubernetes.${id}-default.svc.cluster.local` },
    // A resolver of the member would append its search domains.
    { name: `web.${other}-shop`, down: `web.${other}-shop.` },
    { name: `web.${other}-shop.svc`, down: `web.${other}-shop.svc.` },
    { name: 'web', down: 'web.' },
    ...[
      'kcp',
      'kcp.',
      'KCP',
      `web.${other}-shop.svc.kcp`,
      `web.${other}-shop.svc.kcp.`,
      `WEB.${other.toUpperCase()}-SHOP.SVC.Kcp.`,
      `web.shop.${other}.kcp`,
      'metrics-server.kube-system.svc.kcp',
    ].map((name) => ({ name, down: 'refused.invalid' })),
  ])
    it(`${name.replaceAll(other, 'BOB')} becomes ${down.replaceAll(other, 'BOB').replaceAll(id, 'ACME')}`, () => {
      expect(externalNameDown(name, id)).to.equal(down)
    })
})
