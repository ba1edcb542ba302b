// The library `kcp/cel`: expressions as kube-apiserver compiles, costs and runs them.
export * from '#apimachinery/cel/index.ts'
export { parseStructuralSchema, type SchemaNode } from '#apimachinery/schema/index.ts'
