export * from './schema-node.ts'
