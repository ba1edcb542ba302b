// The import rules of src: `make verify` fails on every import that they do not allow.
import type { ImportRules } from './check-imports.ts'

const leaves = ['apimachinery', 'async', 'telemetry']

export const rules: ImportRules = {
  folders: {
    apimachinery: [],
    async: [],
    telemetry: [],
    network: ['async', 'telemetry'],
    crds: ['apimachinery'],
    placement: ['apimachinery', 'crds'],
    client: leaves,
    'client/member': ['apimachinery', 'crds'],
    reconcile: [...leaves, 'client'],
    libraries: [...leaves, 'client', 'reconcile'],
    store: leaves,
    'store/host': ['apimachinery', 'async', 'client', 'crds'],
    'store/ownership': [...leaves, 'client'],
    virtualapi: [...leaves, 'client', 'crds', 'network', 'placement', 'reconcile', 'store'],
    controllers: [...leaves, 'client', 'crds', 'reconcile'],
    gateway: [...leaves, 'client', 'crds', 'network'],
    syncer: [...leaves, 'client', 'crds', 'placement', 'reconcile'],
    operator: [...leaves, 'client', 'crds', 'placement', 'reconcile'],
    cli: [
      ...[...leaves, 'client', 'controllers', 'crds', 'gateway', 'network', 'operator', 'reconcile', 'store', 'syncer'],
      'virtualapi',
    ],
  },
  floors: {
    apimachinery: [
      'memo meta',
      'quantity text',
      'pod-security status',
      'field json work-budget',
      'schema selector',
      'cel managed-fields patch',
    ],
    client: ['kubeconfig', 'verbs', 'informer', '.', 'member'],
    store: ['. ownership', 'host hub sqlite', 'measured'],
    virtualapi: [
      'flowcontrol request',
      'kinds',
      'catalog discovery',
      'auth codec',
      'outbound',
      'write',
      'background endpoints',
      'server',
      '.',
    ],
    'virtualapi/write': ['conversion quota', 'admission', 'policies', 'webhooks', 'registry'],
    'virtualapi/endpoints': ['call', 'forwarded verbs', 'subresources views', 'documents', '.'],
    syncer: ['join transform', 'context', 'gateway member-dns rules', 'up', 'report', 'down', 'exports triggers', '.'],
    placement: ['move reported-status rules', 'choose', 'rebalance', '.'],
    operator: ['framework', 'autoscaling logical-cluster member-cluster placement projections', '.'],
    cli: ['process', 'roles', 'commands', '.'],
  },
}
