// admissionregistration.k8s.io.
import type { JsonObject } from '../../../src/apimachinery/meta/index.ts'
import type { Row } from '../support/compare-rows.ts'
import { kindRows } from './kind-table.ts'

const hook = {
  name: 'a.example.com',
  clientConfig: { url: 'https://127.0.0.1:1/x' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  failurePolicy: 'Ignore',
  rules: [{ operations: ['CREATE'], apiGroups: ['none.example.com'], apiVersions: ['v1'], resources: ['nones'] }],
}
const hookOthers: [string, JsonObject][] = [
  ['nothing', { webhooks: null }],
  ['an invalid name', { webhooks: [{ ...hook, name: 'a' }, { ...hook, name: '' }, hook, hook] }],
  [
    'invalid addresses',
    {
      webhooks: [
        { ...hook, clientConfig: {} },
        { ...hook, name: 'b.example.com', clientConfig: { url: 'http://x', service: { name: 'a', namespace: 'b' } } },
        { ...hook, name: 'c.example.com', clientConfig: { service: { name: '', namespace: '', path: 'x', port: 0 } } },
        { ...hook, name: 'd.example.com', clientConfig: { url: 'http://u@x?y#z' } },
      ],
    },
  ],
  [
    'invalid rules',
    {
      webhooks: [
        {
          ...hook,
          rules: [
            {},
            {
              operations: ['*', 'CREATE'],
              apiGroups: ['*', 'a'],
              apiVersions: ['*', 'b'],
              resources: ['*', 'x', 'x/*', '*/y', '*/*', ''],
            },
            { operations: ['HUH'], apiGroups: ['a'], apiVersions: [''], resources: ['x/y'], scope: 'Huh' },
          ],
        },
      ],
    },
  ],
  [
    'invalid policies',
    {
      webhooks: [
        {
          ...hook,
          failurePolicy: 'x',
          matchPolicy: 'y',
          sideEffects: 'Some',
          timeoutSeconds: 31,
          admissionReviewVersions: ['v7', 'a_'],
        },
      ],
    },
  ],
  [
    'invalid selectors',
    {
      webhooks: [
        {
          ...hook,
          namespaceSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
          objectSelector: { matchLabels: { 'a b': 'c' } },
        },
      ],
    },
  ],
  ['no versions and no effects', { webhooks: [{ ...hook, sideEffects: null, admissionReviewVersions: [] }] }],
]

const wide = (name: string): JsonObject => ({ name: `${name}-$ID` })

export const admissionRows: readonly Row[] = [
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: wide('validating'),
      webhooks: [hook],
    },
    others: hookOthers,
    updates: [
      ['a timeout', { webhooks: [{ ...hook, timeoutSeconds: 3 }] }],
      ['another name', { webhooks: [{ ...hook, name: 'x' }] }],
    ],
  }),
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: wide('mutating'),
      webhooks: [{ ...hook, reinvocationPolicy: 'IfNeeded' }],
    },
    others: [...hookOthers, ['an unknown reinvocation', { webhooks: [{ ...hook, reinvocationPolicy: 'x' }] }]],
    updates: [['a timeout', { webhooks: [{ ...hook, timeoutSeconds: 3 }] }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: wide('policy'),
      spec: {
        matchConstraints: {
          resourceRules: [
            { operations: ['CREATE'], apiGroups: ['none.example.com'], apiVersions: ['v1'], resources: ['nones'] },
          ],
        },
        validations: [{ expression: 'true' }],
      },
    },
    others: [
      ['nothing', { spec: null }],
      ['no validations', { spec: { validations: [] } }],
      ['no constraints', { spec: { matchConstraints: null } }],
      ['invalid policies', { spec: { failurePolicy: 'x', paramKind: { apiVersion: 'a/b/c', kind: '' } } }],
      ['invalid reasons', { spec: { validations: [{ expression: '', reason: 'x' }] } }],
      ['invalid conditions', { spec: { matchConditions: [{ name: 'a b', expression: '' }] } }],
      [
        'invalid audit annotations',
        { spec: { validations: [], auditAnnotations: [{ key: 'a b', valueExpression: '' }] } },
      ],
    ],
    updates: [['failurePolicy', { spec: { failurePolicy: 'Ignore' } }]],
    parts: [['status', 'observed', { status: { observedGeneration: 1, typeChecking: {} } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: wide('binding'),
      spec: { policyName: 'none-$ID', validationActions: ['Deny'] },
    },
    others: [
      ['nothing', { spec: null }],
      ['no actions', { spec: { validationActions: [] } }],
      ['invalid actions', { spec: { validationActions: ['Deny', 'Warn', 'Deny', 'Huh'] } }],
      ['no policy', { spec: { policyName: '' } }],
      ['invalid params', { spec: { paramRef: {} } }],
      ['params both ways', { spec: { paramRef: { name: 'a', selector: {}, parameterNotFoundAction: 'x' } } }],
    ],
    updates: [['actions', { spec: { validationActions: ['Audit'] } }]],
  }),
]
