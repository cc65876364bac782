/* SPDX-License-Identifier: PostgreSQL
 * scram_pg15.h: passwords and the verifiers that PostgreSQL 15 made of them (UTF-8 database). Many
 * are not ASCII: the verifier shows what SASLprep has to make of them. */
static const char *const pg15_verifiers[][2] = {
    {"geheim", "SCRAM-SHA-256$4096:TqOuJlx/p/"
               "d2x+cfHgp+3A==$B3cz68CXbcmyC0TXmSHkhGhxCNHNxfPYfgqzk1zGxwU=:LaQZ+"
               "iZRMiuoThgsfNVtm2uhxL4eQX/qXuzyKz5QuDY="},
    {"p\303\244ssword",
        "SCRAM-SHA-256$4096:+yDtfhC5yF2rJEx2G6yWJg==$BEoCU6Ny9NGpwpI4EqCDJy6dOsSzFtSPqcAB6dwlVKU=:"
        "UTJCpZ8ZSa/SMGtYByyDEVA13hOKX9XpXZ7WlO4Os4o="},
    {"pa\314\210ssword",
        "SCRAM-SHA-256$4096:WylGN0tUmVi6zQRa8Jf3Ig==$y8UZsMObS9/RRMDAsVVA9NEBe07BCcBEW13/"
        "SK3OZuE=:inytn9BDlmeTKiHKRpzgUnlZnPVAsb8n4tr4KmHa7SQ="},
    {"a\302\240b",
        "SCRAM-SHA-256$4096:rwcqZkSbh3TaICRFeMCFEg==$rhuz+4FKAlXBJSGaD0gHHeTEcZdMUainGBig+XnfpRk=:"
        "ryMhZGPhjvL+I3JEC2cq/alKxMh9FsSnUY2/IHo9hyA="},
    {"I\302\255X",
        "SCRAM-SHA-256$4096:vet6LYhCt8YM+IrJLQvexQ==$HVXTa85DOHLFU8DRxksUKEtT5eCTTj2G0r59CuYKPC8=:"
        "pZpA/PCTrQ9EUm4ldijR6bnadGkT4IOgiBb+4MdiPJY="},
    {"\342\205\250",
        "SCRAM-SHA-256$4096:6MqKyIrYWhWD8agQ39dFlQ==$+l1pPDPOFWxRuSgjNUJ07T3deNVlZrA5mmZqIkZ8SpE=:"
        "WWqFw+Yh+4jVe2MQRA16SEqozFGX9SAMj0rGWFDLXnA="},
    {"\357\274\241\357\274\242\357\274\243",
        "SCRAM-SHA-256$4096:JLn6KGThRNKxoRmDEX8Ymw==$6w6s1apJwIgAfsJGhLzQjUQrrzLvPVQFzsulyasywts=:"
        "2Rft4jiI00aq1IanYbkdIFhQTz/ZQvcnvAxWEBa5mHE="},
    {"\330\247\330\250",
        "SCRAM-SHA-256$4096:B9ZUg5y6FGL3zcPN/rwfzw==$9uu9hwc91xgYR/"
        "wKQu85dRU1zFPtzLJKiGQGdG1FaxI=:8IITDodXUF8b4wXj+FurSwip8V4Qjjs3SVRXqa9BjZ0="},
    {"\330\2471", "SCRAM-SHA-256$4096:+ocwr0xYU6Y/n6nbU21KOg==$oEimpMNDdbih/"
                  "BODmEmnYX28BCIEIW2ytSlrXT74yBM=:pfIlU9uxWTa+YnbCtWx2XiitmjotMld2e7KD4X3l/3w="},
    {"a\007b", "SCRAM-SHA-256$4096:MAsqWer9ki6enyfoqg9diw==$gU+MLeIdt+e33PAft+"
               "aCLCYDxZLC1unEnQNYnWNnVE4=:UsUbWJ5r48zIx/3sgiz0HzThKWgwNTQpCZEwpXXd4pw="},
    {"a\342\200\213b",
        "SCRAM-SHA-256$4096:VFX1ZGFdYsKeFRqKWAwDJg==$As+Fb5Jvug01OQdt9AsgO8WWyDG0lvwEds7rbMXN4vU=:"
        "oYvG7ix7JkKkPPXFCTm00ZVbj9VoPeJqZXfg4PAF0uo="},
    {"\360\237\230\200", "SCRAM-SHA-256$4096:32mZq+tQxh1TyE714aO25Q==$8rO6wMXvbNEILhWeWJ/n/"
                         "vUMko8nZMqpwS79twbTC0M=:Rjf748QXt1ncFQldmBEedrDYGTOKDpyP6Cp3HWFrIGE="},
    {"\357\254\201sh",
        "SCRAM-SHA-256$4096:YNzkj2cnchwqATQfJThGFg==$s6DTg5X5KoBkdu/"
        "BEG5ep30xupmqelsH5Wd4y3FYvyI=:ddx5CO7thEVoQDoEhlYFzD172u2q4uGXDpUE0PakOjA="},
    {"\341\204\200\341\205\241\341\206\250",
        "SCRAM-SHA-256$4096:sTdei8M/5pNFRrlenMuZ8A==$AY9wUw/CC2NxyRr6gVauU53XK8T2v/j6PRgtXhZ4/"
        "PE=:Jk8Ew6/QPIF7d9DLJAnUdXuvgKfJQwHUwEw/C+ovK8k="},
    {"a\330\247", "SCRAM-SHA-256$4096:q4cPjNGQrVKsQ1u7l+/"
                  "02g==$brmlbF5T60095GPeJazNE+q1aB5idN6jQH5LWhbGCIc=:"
                  "hlYi9oV2MI3QT3jGThbWQxIKCokGQ4I88Gbk3OJ9ZQw="},
    {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "SCRAM-SHA-256$4096:qtVo+CrBTTszzdYAlb3yyA==$V+Rdwatd3KsGcMiDJaFWQfRXc8RWObdCR0i/"
        "LpH4yY8=:k/WVngVsWhdszQ5aMkm7XHoGaMHVuYeu8SK5+/9pOIg="},
    {"\316\221\314\201", "SCRAM-SHA-256$4096:TzE0zT+Mv+Uj1OBtGN/Feg==$4g2VCffVdbC0gMfX2fHL2q8CSY/"
                         "KryG12oN69wWwIj8=:cKWsUuhAwb6oJUExA/qYWYZuSNeht8PJSutgEjyYF2s="},
    {"\342\204\253\342\204\246",
        "SCRAM-SHA-256$4096:hIprYql6EyxihNooWNGp6g==$B+3vienjtFvCA8kiLmBQs50jyC1tWNUrnuUNaVMG5bk=:"
        "TI0YRJaRK14pmNb7H4x56UNscigfrh2kzQ0qteXTcHw="},
    {"\341\272\233\314\243", "SCRAM-SHA-256$4096:2EksTUid1a7Os/"
                             "4rBAWbrQ==$hEh2ACx0Y6QwHPM0ynuD6OxBPzJv7aPb6mHYuv0h4Sg=:"
                             "NOtvqQRTaDyf2O0wVUs4pr0E/sXYGcTc/LnbuspS3Pk="},
    {"d\314\243\314\207",
        "SCRAM-SHA-256$4096:ifp5bD/a1Gck+7rT8K07ig==$/"
        "BO2keCAv3wRgkGW0etiPiHD2cLMHt35R0VtR6pGQzs=:gHURDjRHVaMeZlz2O5MSoPXyW6+rj25H/k9YbkLizeo="},
    {"d\314\207\314\243",
        "SCRAM-SHA-256$4096:13J7vofC887pGmkOOK876A==$5EP0zwI1cCqDPTV26HtJk2Ovz2dgjuhNJAGZhR8RRCU=:"
        "xZ3OrHOeQyqN/Oj0YQ/3RGRUN/TbpVKiYnL8zoGYcsA="},
    {"\343\200\200pw", "SCRAM-SHA-256$4096:3Ti2Nuzee4wTTl5xobiK2A==$SP3VkQ7aEnlxen+7Ik36oRWZ/"
                       "VRgdCiBxrFFHdDHlJo=:mCv8KrKMox1kkvsBBaDHeVlfcmCbtFbkgAQfB4ImNTo="},
    {"\315\200\315\201x", "SCRAM-SHA-256$4096:eZ1DQpjyC95btUSq7tpxjw==$fcGcu/Q+xeGVi+8qz22amOUC/"
                          "A2mbGxzWKJD+gnJ2Fg=:cJoaUTTBzZw/O9QdtdgcyOcmROwbSMIPcf7KqSv0huI="},
    {"\342\221\240\302\274",
        "SCRAM-SHA-256$4096:JZkGQdgNSekrTl/NonTyQQ==$tslfUe41ugw7WTP3dstauutGzQyx/"
        "VcVFKnik7p8Cws=:3WigNs+0yOKitdHCGClmw+KZBIEeIM7kKEaZ1JMHbIU="},
    {"\340\270\263\340\272\263",
        "SCRAM-SHA-256$4096:WOT4s44NPT9/XauN6U8HaQ==$iWf/"
        "ZQITfhhXgB7lUVCa0y8oVim6MvXeSyWfKiL33wI=:9Lpiww9hY7/mznxqi4B/dIFa9/n7tT+E61X9KKFn94Y="},
    {"\302\252", "SCRAM-SHA-256$4096:cmV2M+NYD5HjW7QCphk1Fg==$hfGBYxruwfJWp3cpcYrYF7xY1WviX4v6mx+"
                 "VtFGXAOc=:1tKsc4uIalq3S3HHiAggxUrpEBRgmE6bB+801V2+TBk="},
    {"\357\254\254", "SCRAM-SHA-256$4096:JRkT3WSRA/Yow2xNC13Uhg==$I5qslGfgB/mWita9ZpQEBWM6xT9qProj/"
                     "kSoKZk++ZM=:8hIqlyhITWA2vg1u3TXr0DQl4sqHgxN3rKhcll7Bda8="},
    {"\342\277\2772",
        "SCRAM-SHA-256$4096:3kUnqiRSkSVCQywNIvYt1g==$taaWVD0SWVfouCoN5OQQGVabLIfuGYbRcbQDSeRnjWE=:"
        "Td6c1KGwBCM3Strc2h38anpBi/q/cL5DOLF9v5TSLos="},
    {"\317\223", "SCRAM-SHA-256$4096:m9eVayEdPf5x/"
                 "r2fZb915Q==$GyPNVJYY1JFS4ZU3gTk01SOGyWH1M1wUNJuU6iJrAwU=:IwdgvHRyETcOauk327B8Yi/"
                 "SjWMtQKijoxTUV61ZlNg="},
    {"\352\260\200\341\206\250",
        "SCRAM-SHA-256$4096:w4rYe9PrwGOOWLRrnDGBTA==$otrl9yk8blon+xwdoqN3RHNKFxocHNFc8x2742RKEX0=:"
        "NIGNqlZvaGJzD4qUQCYWE0fypzvNnhnKZz1JDOW2oCE="},
    {"\360\235\220\200\360\235\237\277",
        "SCRAM-SHA-256$4096:sQNrIKBrdn+dVSEBnxILIg==$HWeNx53N6Kpg1NfH7QvRrdWn9s3lOVPLJwkngD+Gl2I=:"
        "rh+6BRj+KOZn9pmH3TyMA+G8KsJLX+8kl3c0iFHsMTE="},
    {"\310\241x", "SCRAM-SHA-256$4096:yP1UmGiYRBw9eJr3x7Auzg==$oCyJiXviL3XSiXsVZPpYlIa/"
                  "6gdTHjsb5p17KNHcUJM=:0pEvGaAyvIKVRYHqDGDMjm2f3nmynsG1ax3Vf16VbpY="},
    {"\342\276\2000",
        "SCRAM-SHA-256$4096:fVFwswMj+WAxo1gvEX2KWg==$5IUhf5/xTC8e2Vk6Tti9i16yseIjrGAycD/"
        "3mfIjLuY=:fhdAim0pq8nM2/bueqRKRETZ1Wa5IAgWbVBHaJJy02g="},
    {"\360\257\240\200", "SCRAM-SHA-256$4096:Y10+RGIH+cOaloRme+pYvg==$YyalLqqKqnAoI5gJZI13qYV/"
                         "pYRD6DUNhjy40N8u1MI=:u3uE+G1bPFP/guNestD3bN+zoLOC9w8Gyi1CGsV/LpQ="},
    {"\341\204\200\352\260\200\341\206\247",
        "SCRAM-SHA-256$4096:tyztQtagLydJV6++dTyE1g==$N8lVXYmS8Bwn/5/t//"
        "WGhi0ILh6snLWLnKxHkwGgdJk=:91iJZq3DU9QgfNfQoOtbAV8k9n/4YWXdbxpineB2Ie0="},
    {"\340\245\230", "SCRAM-SHA-256$4096:DS6WOEhcz19DIDz0ex4E4w==$X2tOhQwmI63Jv+"
                     "bXz6TPkK4TXPD8ibbJCBhk0hIlA6k=:eVp3s/HrxaUK6MLmbSh/CwfYQ4IZhQEeRSD3B+KCYsk="},
    {"\315\204",
        "SCRAM-SHA-256$4096:aizo0TXwDhoWxxNCLYCqDw==$ob4kEVgtKq6fTggOOFkfqTm06tYoN4Nz7XMz9ZsbulM=:"
        "J2ZkCzS5K1gQOccGNqICWnK+LrqfX53QSX8778a2RGA="},
    {"\340\275\203",
        "SCRAM-SHA-256$4096:ij+HOlq9+GTQPpxCrvsnTQ==$cHtUGv1gvc3NrE6IkQGdmyW0utDEszd3e663/"
        "SDwKYk=:MKO/NUN0s1yyLl1H3walgb3D07NYRuTxwdxA2uMilPw="},
};
