/** A callback of the platform about messages of a number: `contacts`, `messages` and `statuses` as they are given. */
export const callbackOf = (phone: string, told: Record<string, object[]>) => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      id: '1',
      changes: [
        {
          field: 'messages',
          value: {
            messaging_product: 'whatsapp',
            metadata: { display_phone_number: '15550001111', phone_number_id: phone },
            ...told,
          },
        },
      ],
    },
  ],
})
