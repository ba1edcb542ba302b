export * from './decode-protobuf.ts'
