// PUT: preconditions, fields that are kept, and what counts as a change.
import { get, post, put, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const custom = widgets('updates')
const sets = '/apis/apps/v1/namespaces/{ns}/replicasets'
const leases = '/apis/coordination.k8s.io/v1/namespaces/{ns}/leases'

const change = (what: string, body: object, options: object = {}): Row => put(`${maps}/a`, body, { what, ...options })
const widget = (metadata: object, more: object = {}): object => ({
  apiVersion: custom.apiVersion,
  kind: 'Widget',
  metadata: { name: 'w', ...metadata },
  ...more,
})
const changeWidget = (what: string, body: object, options: object = {}): Row =>
  put(`${custom.path}/w`, body, { what, ...options })
const template = (image: string): object => ({
  metadata: { labels: { app: 'd' } },
  spec: { containers: [{ name: 'c', image }] },
})
const replicaSet = (metadata: object, image = 'a', more: object = {}): object => ({
  metadata: { name: 'd', ...metadata },
  spec: { replicas: 0, selector: { matchLabels: { app: 'd' } }, template: template(image) },
  ...more,
})

export const updates: Topic = {
  name: 'updates',
  rows: [
    put(`${maps}/absent`, { metadata: { name: 'absent' } }),
    put(`${maps}/absent`, { metadata: { name: 'absent', resourceVersion: '5' } }, { what: 'with a revision' }),
    put(`${maps}/absent`, { metadata: { name: 'absent', uid: 'x' } }, { what: 'with a uid' }),
    put(`${maps}/Not_Valid`, { metadata: { name: 'Not_Valid' } }),
    post(
      maps,
      { metadata: { name: 'a', labels: { l: '1' }, annotations: { n: '1' } }, data: { k: '1' } },
      { save: 'a' },
    ),
    change('unconditional', { metadata: { name: 'a' }, data: { k: '2' } }, { save: 'second' }),
    change("nulls for what is the server's own", {
      metadata: { name: 'a', uid: null, deletionTimestamp: null, deletionGracePeriodSeconds: null, labels: null },
      data: { k: '2' },
    }),
    change('no name in the body', { data: { k: '2' } }),
    change('an empty body object', {}),
    change('a stale revision', {
      metadata: { name: 'a', resourceVersion: '<<a.metadata.resourceVersion>>' },
      data: { k: '3' },
    }),
    get(`${maps}/a`, { what: 'after that', save: 'now' }),
    change(
      'the revision',
      { metadata: { name: 'a', resourceVersion: '<<now.metadata.resourceVersion>>' }, data: { k: '3' } },
      { save: 'third' },
    ),
    change('the same again', {
      metadata: { name: 'a', resourceVersion: '<<third.metadata.resourceVersion>>' },
      data: { k: '3' },
    }),
    change('the same, unconditional', { metadata: { name: 'a' }, data: { k: '3' } }),
    change('the same with other times', {
      metadata: { name: 'a', creationTimestamp: '2001-01-01T00:00:00Z', generation: 9, selfLink: '/x' },
      data: { k: '3' },
    }),
    change('empty members', {
      metadata: { name: 'a', labels: {}, annotations: null, finalizers: [] },
      data: { k: '3' },
      binaryData: {},
    }),
    change('revision 0', { metadata: { name: 'a', resourceVersion: '0' }, data: { k: '4' } }),
    change('a garbage revision', { metadata: { name: 'a', resourceVersion: 'abc' }, data: { k: '5' } }),
    change('a future revision', { metadata: { name: 'a', resourceVersion: '1999999999' }, data: { k: '5' } }),
    change('a negative revision', { metadata: { name: 'a', resourceVersion: '-1' }, data: { k: '5' } }),
    change('the uid', { metadata: { name: 'a', uid: '<<a.metadata.uid>>' }, data: { k: '6' } }),
    change('another uid', { metadata: { name: 'a', uid: '11111111-2222-3333-4444-555555555555' }, data: { k: '7' } }),
    change('a deletion', {
      metadata: { name: 'a', deletionTimestamp: '2001-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 },
      data: { k: '8' },
    }),
    change('generateName', { metadata: { name: 'a', generateName: 'b-' }, data: { k: '9' } }),
    change('managedFields reset', { metadata: { name: 'a', managedFields: [{}] }, data: { k: '9' } }),
    change('a bad label', { metadata: { name: 'a', labels: { 'a b': '' } } }),
    change('a bad finalizer', { metadata: { name: 'a', finalizers: ['x y'] } }),
    change('immutable', { metadata: { name: 'a' }, data: { k: 'i' }, immutable: true }),
    change('immutable set to false', { metadata: { name: 'a' }, data: { k: 'i' }, immutable: false }),
    change('immutable data', { metadata: { name: 'a' }, data: { k: 'j' }, immutable: true }),
    change('labels of an immutable object', {
      metadata: { name: 'a', labels: { l: '2' } },
      data: { k: 'i' },
      immutable: true,
    }),
    put(`${maps}/a?dryRun=All`, { metadata: { name: 'a', labels: { l: '3' } }, data: { k: 'i' }, immutable: true }),
    put(`${maps}/a?dryRun=garbage`, { metadata: { name: 'a', labels: { l: '3' } }, data: { k: 'i' }, immutable: true }),
    put(`${maps}/a?fieldValidation=Garbage`, {
      metadata: { name: 'a', labels: { l: '3' } },
      data: { k: 'i' },
      immutable: true,
    }),
    put(`${maps}/a?fieldManager=%01`, {
      metadata: { name: 'a', labels: { l: '3' } },
      data: { k: 'i' },
      immutable: true,
    }),
    get(`${maps}/a`, { what: 'after dry runs' }),
    put(`${maps}/a/status`, { metadata: { name: 'a' } }),

    // Created by PUT if the kind allows it.
    put(`${leases}/l`, { metadata: { name: 'l' }, spec: { holderIdentity: 'x' } }, { save: 'lease' }),
    put(`${leases}/l`, { metadata: { name: 'l' }, spec: { holderIdentity: 'y' } }, { what: 'without a revision' }),
    put(
      `${leases}/l`,
      { metadata: { name: 'l', resourceVersion: '<<lease.metadata.resourceVersion>>' }, spec: { holderIdentity: 'y' } },
      { what: 'with the revision' },
    ),
    put(`${leases}/l2`, { metadata: { name: 'l2', resourceVersion: '77' } }, { what: 'absent, with a revision' }),
    put(
      `${leases}/l3`,
      { metadata: { name: 'l3', uid: '11111111-2222-3333-4444-555555555555' } },
      { what: 'absent, with a uid' },
    ),
    put(`${leases}/l4?dryRun=All`, { metadata: { name: 'l4' } }),
    get(`${leases}/l4`, { what: 'after a dry run' }),
    put(
      `/api/v1/namespaces/{ns}/services/s`,
      { metadata: { name: 's' }, spec: { clusterIP: 'None', ports: [{ port: 80 }] } },
      { what: 'a service' },
    ),
    put('/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles/r', { metadata: { name: 'r' }, rules: [] }),
    put('/api/v1/namespaces/no-such-namespace/configmaps/a', { metadata: { name: 'a' } }),
    put('/apis/coordination.k8s.io/v1/namespaces/no-such-namespace/leases/a', { metadata: { name: 'a' } }),

    // Spec and status.
    post(sets, replicaSet({}), { what: 'a replica set' }),
    put(`${sets}/d`, replicaSet({ labels: { l: '1' } }), { what: 'labels: no new generation' }),
    put(`${sets}/d`, replicaSet({ labels: { l: '1' } }, 'b'), { what: 'spec: a new generation' }),
    put(`${sets}/d`, replicaSet({ labels: { l: '1' } }, 'b', { status: { replicas: 5, observedGeneration: 2 } }), {
      what: 'status by the main endpoint',
    }),
    put(
      `${sets}/d/status`,
      replicaSet({ labels: { l: '2' }, annotations: { x: 'y' } }, 'c', {
        status: { replicas: 5, observedGeneration: 2 },
      }),
      { what: 'status, spec and labels' },
    ),
    put(
      `${sets}/d/status`,
      replicaSet({ labels: { l: '2' }, annotations: { x: 'y' } }, 'b', {
        status: { replicas: 5, observedGeneration: 2 },
      }),
      { what: 'the same status' },
    ),
    put(`${sets}/absent/status`, { ...replicaSet({}), metadata: { name: 'absent' } }),
    get(`${sets}/d/status`),
    get(`${sets}/d/scale`, { save: 'scale' }),
    put(`${sets}/d/scale`, { metadata: { name: 'd', namespace: '{ns}' }, spec: { replicas: 2 } }),
    put(
      `${sets}/d/scale`,
      { metadata: { name: 'd', namespace: '{ns}' }, spec: { replicas: -2 } },
      { what: 'a negative number' },
    ),
    put(
      `${sets}/d/scale`,
      {
        metadata: { name: 'd', namespace: '{ns}', resourceVersion: '<<scale.metadata.resourceVersion>>' },
        spec: { replicas: 3 },
      },
      { what: 'a stale revision' },
    ),
    put(
      `${sets}/d/scale`,
      { metadata: { name: 'e', namespace: '{ns}' }, spec: { replicas: 3 } },
      { what: 'another name' },
    ),
    put(`${sets}/d/scale`, { metadata: { namespace: '{ns}' }, spec: { replicas: 3 } }, { what: 'no name' }),
    put(`${sets}/d/scale`, { spec: {} }, { what: 'nothing' }),
    put(
      `${sets}/d/scale`,
      { kind: 'Deployment', apiVersion: 'apps/v1', metadata: { name: 'd' } },
      { what: 'a replica set' },
    ),
    put(`${sets}/d/scale?dryRun=All`, { metadata: { name: 'd', namespace: '{ns}' }, spec: { replicas: 7 } }),
    get(`${sets}/d/scale`, { what: 'after a dry run' }),
    put(`${sets}/absent/scale`, { metadata: { name: 'absent', namespace: '{ns}' }, spec: { replicas: 3 } }),

    // Custom resources.
    ...custom.rows,
    put(`${custom.path}/w`, widget({}), { what: 'absent' }),
    put(`${custom.path}/w`, widget({ resourceVersion: '5' }), { what: 'absent, with a revision' }),
    post(custom.path, widget({}, { spec: { color: 'red', replicas: 1 }, status: { phase: 'New' } }), { save: 'w' }),
    changeWidget('no revision', widget({}, { spec: { color: 'blue' } })),
    changeWidget('revision 0', widget({ resourceVersion: '0' }, { spec: { color: 'blue' } })),
    changeWidget('a garbage revision', widget({ resourceVersion: 'x' }, { spec: { color: 'blue' } })),
    changeWidget(
      'the revision',
      widget({ resourceVersion: '<<w.metadata.resourceVersion>>' }, { spec: { color: 'blue', replicas: 1 } }),
      { save: 'w2' },
    ),
    changeWidget(
      'a stale revision',
      widget({ resourceVersion: '<<w.metadata.resourceVersion>>' }, { spec: { color: 'blue' } }),
    ),
    changeWidget(
      'the same',
      widget({ resourceVersion: '<<w2.metadata.resourceVersion>>' }, { spec: { color: 'blue', replicas: 1, size: 3 } }),
    ),
    changeWidget(
      'another uid',
      widget({ resourceVersion: '<<w2.metadata.resourceVersion>>', uid: '11111111-2222-3333-4444-555555555555' }),
    ),
    changeWidget(
      'status by the main endpoint',
      widget(
        { resourceVersion: '<<w2.metadata.resourceVersion>>' },
        { spec: { color: 'blue', replicas: 1 }, status: { phase: 'Done' } },
      ),
      { save: 'w3' },
    ),
    changeWidget(
      'labels: no new generation',
      widget(
        { resourceVersion: '<<w3.metadata.resourceVersion>>', labels: { l: '1' } },
        { spec: { color: 'blue', replicas: 1 } },
      ),
      { save: 'w4' },
    ),
    put(
      `${custom.path}/w/status`,
      widget(
        { resourceVersion: '<<w4.metadata.resourceVersion>>', labels: { l: '2' }, annotations: { x: 'y' } },
        { spec: { color: 'green' }, status: { phase: 'Done', replicas: 1 } },
      ),
      { save: 'w5' },
    ),
    put(
      `${custom.path}/w/status`,
      widget({ resourceVersion: '<<w5.metadata.resourceVersion>>' }, { status: { phase: 7 } }),
      { what: 'a bad status' },
    ),
    put(`${custom.path}/w/status`, widget({}, { status: { phase: 'Done' } }), { what: 'status without a revision' }),
    get(`${custom.path}/w/status`),
    get(`${custom.path}/w/scale`),
    put(`${custom.path}/w/scale`, {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'w', namespace: '{ns}' },
      spec: { replicas: 4 },
    }),
    put(
      `${custom.path}/w/scale`,
      { metadata: { name: 'w', namespace: '{ns}' }, spec: { replicas: 4 } },
      { what: 'no kind' },
    ),
    put(
      `${custom.path}/w/scale`,
      {
        apiVersion: 'autoscaling/v1',
        kind: 'Scale',
        metadata: { name: 'w', namespace: '{ns}' },
        spec: { replicas: -4 },
      },
      { what: 'a negative number' },
    ),
    get(`${custom.path}/w`),
  ],
}
