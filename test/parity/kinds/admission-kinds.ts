// admissionregistration.k8s.io.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import type { Row } from '#test/parity/support/compare-rows.ts'
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
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1beta1',
      kind: 'MutatingAdmissionPolicy',
      metadata: wide('mutating-policy'),
      spec: {
        matchConstraints: {
          resourceRules: [
            { operations: ['CREATE'], apiGroups: ['none.example.com'], apiVersions: ['v1'], resources: ['nones'] },
          ],
        },
        reinvocationPolicy: 'Never',
        mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{}' } }],
      },
    },
    others: [
      ['nothing', { spec: null }],
      ['no mutations', { spec: { mutations: [] } }],
      ['no constraints', { spec: { matchConstraints: null } }],
      [
        'invalid policies',
        { spec: { failurePolicy: 'x', reinvocationPolicy: 'x', paramKind: { apiVersion: 'a/b/c' } } },
      ],
      ['no reinvocation', { spec: { reinvocationPolicy: null } }],
      [
        'deletions',
        {
          spec: {
            matchConstraints: {
              resourceRules: [
                { operations: ['DELETE', 'CONNECT', 'x'], apiGroups: ['a'], apiVersions: ['v1'], resources: ['nones'] },
              ],
            },
          },
        },
      ],
      [
        'invalid mutations',
        {
          spec: {
            mutations: [
              { patchType: 'x' },
              {},
              { patchType: 'JSONPatch' },
              { patchType: 'ApplyConfiguration', jsonPatch: { expression: '[]' } },
              {
                patchType: 'JSONPatch',
                jsonPatch: { expression: ' ' },
                applyConfiguration: { expression: 'Object{}' },
              },
              { patchType: 'JSONPatch', jsonPatch: { expression: 'Object{}' } },
              { patchType: 'ApplyConfiguration', applyConfiguration: { expression: ' [JSONPatch{op: "add"}] ' } },
              { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{' } },
              { patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{op: 1, path: "/a", nothing: 2}]' } },
              { patchType: 'JSONPatch', jsonPatch: { expression: '[JSONPatch{path: jsonpatch.escapeKey(1)}]' } },
              { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Object{spec: variables.a}' } },
              { patchType: 'ApplyConfiguration', applyConfiguration: { expression: 'Other{}' } },
            ],
          },
        },
      ],
      [
        'mutations of all forms',
        {
          spec: {
            paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
            variables: [{ name: 'a', expression: 'params.data.a' }],
            mutations: [
              {
                patchType: 'ApplyConfiguration',
                applyConfiguration: {
                  expression: 'Object{metadata: Object.metadata{labels: {"a": variables.a}}, spec: Object.spec{b: 1}}',
                },
              },
              {
                patchType: 'JSONPatch',
                jsonPatch: {
                  expression:
                    '[JSONPatch{op: "add", path: "/a/" + jsonpatch.escapeKey("b/c"), value: Object.a{d: [1, 2]}}]',
                },
              },
            ],
          },
        },
      ],
      ['a condition that does not compile', { spec: { matchConditions: [{ name: 'a', expression: 'Object{}' }] } }],
      ['a variable of a patch type', { spec: { variables: [{ name: 'a', expression: 'Object{}' }] } }],
    ],
    updates: [['failurePolicy', { spec: { failurePolicy: 'Ignore' } }]],
  }),
  ...kindRows({
    object: {
      apiVersion: 'admissionregistration.k8s.io/v1beta1',
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: wide('mutating-binding'),
      spec: { policyName: 'none-$ID' },
    },
    others: [
      ['nothing', { spec: null }],
      ['no policy', { spec: { policyName: '' } }],
      ['an invalid policy', { spec: { policyName: 'a b' } }],
      ['invalid params', { spec: { paramRef: {} } }],
      ['params both ways', { spec: { paramRef: { name: 'a', selector: {}, parameterNotFoundAction: 'x' } } }],
      [
        'deletions',
        {
          spec: {
            matchResources: {
              resourceRules: [{ operations: ['DELETE'], apiGroups: ['a'], apiVersions: ['v1'], resources: ['nones'] }],
            },
          },
        },
      ],
    ],
    updates: [['the policy', { spec: { policyName: 'other-$ID' } }]],
  }),
]
