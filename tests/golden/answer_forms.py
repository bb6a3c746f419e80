"""Answers as models write them, with what a reader may take from each: a decision, several, none, or a refusal.

Options are `A. dog  B. cat  C. bird  D. fish`; labels are happy, sad, angry and neutral, male and female, or digits.
`SEVERAL` names more than one and decides for none, `NOTHING` decides for none, `REFUSAL` declines.
"""

SEVERAL, NOTHING, REFUSAL = "several", "nothing", "refusal"
CHOICES = ("dog", "cat", "bird", "fish")
EMOTIONS = ("happy", "sad", "angry", "neutral")
GENDERS = ("male", "female")
DIGITS = tuple("0123456789")

OPTION = {
    "B": """
B|b|B.|(B)|[B]|**B**|*B*|B)|B:|`B`|'B'|"B"|“B”|Ｂ|（B）|{B}|<B>|$B$|B\\n|B!|B。
B: cat|B. cat|(B) cat|B) cat|B - cat|B – the cat|**B. cat**|**B**: cat|B (cat)|cat (B)|cat|Cat.|a cat|The cat|A cat.
Option B|option B.|Choice B|Option: B|Selected option: B|Letter B
The letter is B.|Answer B|Answer: B|Answer: (B)|ANSWER: B.
Answer - B|Final answer: B|**Final answer:** B|**Answer: B**|Correct answer: **B**|My answer is B.|My final answer: B
The answer is B|The answer is (B) cat.|The answer is option B.
The answer is: B|The answer is "B".|The answer would be B.
The correct answer is B.|The correct option is B|The right choice is B.
The best answer is: B|The most likely answer is B.
I choose B.|I'd choose B|I would go with B.|I'll go with option B.
I pick B|I select (B).|I'm going with B.|Going with B.
I think it's B.|I think it is B|I believe the answer is B.
I would say B.|It is B.|It's B|It must be B.|That would be B.|That's B.
B is correct.|B is the correct answer.|Option B is the best choice.
B is right|B it is.|B seems most likely.|B fits best.
Definitely B.|Probably B.|Clearly B|So B.|Therefore, B.|Hence, option B.|Thus B.|Likely B.|Maybe B.|Must be B.
It is a cat.|The sound is a cat.|It sounds like a cat meowing.
I hear a cat.|This is the sound of a cat|That is clearly a cat!
\\\\boxed{B}|$\\\\boxed{\\\\text{B}}$|The answer is $\\\\boxed{B}$.|Therefore, the answer is B.|So the answer must be B.
B, because of the meowing.|B because I hear meowing|B - I hear meowing.|B; the animal meows.|B as there is meowing
The answer is B, not A.|The answer is B rather than A.|B, not C|B rather than A|B instead of D|It is not A, it is B.
It's not a dog; it's a cat.|Not A but B.|It is not the dog but the cat.
A is wrong. The answer is B.|A is incorrect, B is correct.
Option A doesn't match, so it must be B.|Option A doesn't match, so it must be the cat.|The answer cannot be A. It is B.
A, C and D are wrong, so B is correct.|Neither A nor C; the answer is B.
Between A and B, I choose B.|Of A and B, the answer is B.
While A is possible, B is the best answer.
I considered A, but the answer is B.|At first I thought of A. The answer is B.
Answer: B\\nExplanation: I hear a cat.|B\\n\\nThe sound is that of a cat.
The audio has meowing.\\nAnswer: B|I hear meowing.\\n\\nB
A. dog: no barking\\nB. cat: meowing is heard\\nC. bird: no\\nD. fish: no\\n\\nThe answer is B.
I hear meowing.\\n\\n**B**
<answer>B</answer>|{"answer": "B"}|{"choice": "B"}|{"answer": "cat"}
```json\\n{"answer": "B"}\\n```|{"option": "B", "why": "not A"}
{"A": 0.1, "B": 0.9}|{"A": 0.05, "B": 0.8, "C": 0.1, "D": 0.05}|{"dog": 0.2, "cat": 0.8}|A: 0.1, B: 0.7, C: 0.1, D: 0.1
A: 10%\\nB: 80%\\nC: 5%\\nD: 5%|A 0.1\\nB 0.9|The probabilities are A: 0.2, B: 0.8.
答案是B|答案：B|答案为B。|答案是：B|答案是（B）|正确答案是B|正确答案是选项B|最终答案：B|故选B|选B|选B。|我选择B|我选B|应选B|选项B|B选项
B是正确的|B正确|所以答案是B|因此选B。|不是A，而是B|答案是B，不是A|答案应该是B|B。猫|应该是B|答案是Cat。|是cat的声音|这是cat|cat（B）
Die Antwort ist B.|Antwort: B|Antwort B ist richtig.|Richtig ist B.
Ich wähle B.|Option B ist korrekt.|Die richtige Antwort ist B
La réponse est B.|Réponse : B|La bonne réponse est B.|Je choisis B.|La réponse correcte est l'option B.|C'est B.
La respuesta es B.|Respuesta: B|La respuesta correcta es B.|Elijo B.|La opción correcta es B.|Es la opción B.
答えはBです。|答え：B|正解はBです|Bです。|Bが正解です|選択肢B
Ответ: B|Правильный ответ: B|Ответ — B.|Ответ B.|Правильный вариант B
""",
    "A": "bird? no, dog.",
    SEVERAL: """
A or B|A or B.|The answer is A or B.|Answer: A/B|A/B|A and B|B and C
Both A and B|both A and B.|Either A or B|It is either A or B.
A, B|A & B|A, C|A, B, C|A, B and D|It could be A or B.|Maybe A or B.
A or maybe B|B or possibly C|B, or perhaps C.|A and/or B
The answer is B or C, I am not sure.|Options A and B are both correct.|A and B are correct.|A or B is correct.|A) or B)
(A) or (B)|(A)/(B)|**A** or **B**|Option A or option B|Answer: A, B
Answer: A and C|\\\\boxed{A, B}|\\\\boxed{A} or \\\\boxed{B}
It is a dog or a cat.|a dog or cat|I hear a dog and a cat.|dog, cat
dog/cat|Either a bird or a fish.|I choose A or C|I would go with A or D
The answer is A. The answer is B.|Answer: A\\nAnswer: C|A? Or B?
The correct answers are A and D.|The answer is A as well as C
{"A": 0.5, "B": 0.5}|{"answer": "A or B"}|A: 0.4, B: 0.4, C: 0.2|["A", "B"]|The answer is either B or D.|A, or B
答案是A或B|A或B|答案是A和B|A和C|A、B|答案：A、C|选A或者B|A与B都对|dog或cat|可能是dog或者cat|A还是B|答案是A/B
A oder B|Die Antwort ist A oder B.|Entweder A oder C.|A und B|A ou B|La réponse est A ou B.|A et C|Soit A, soit B
A o B|La respuesta es A o B.|A y C|AまたはB|AかB|AとB|答えはAかBです。|А или B?|A или B|Ответ: A или C|A и B
""",
    NOTHING: """
The answer cannot be B.|The answer can't be B.|It cannot be B.
It can not be B|Not B.|not B|B is wrong.|B is incorrect.|B is not correct.
B doesn't match.|Option B doesn't match.|Option B does not fit.
The answer is not B.|The answer isn't B.|It's definitely not B|It is not B
Anything but B|I would rule out B.|B can be ruled out.|B cannot be right.
B is unlikely.|Option B is wrong|Option B is false.|Never B
Neither A nor B.|Neither a dog nor a cat.|It is not a dog.|It isn't a cat.
There is no dog.|No cat is heard.|It doesn't sound like a bird.
rather than B|instead of B|Other than B|Except B|All but B|without a dog
It can't be the cat.|I don't think it's B.|I doubt it is B.
None of the above|None of them.|I don't know.|I have no idea.
No answer|I am not sure.|Unclear.|It depends.|?|...|N/A|Hello!
vitamin C|The recording mentions vitamin C.|It is in C major|plan B
My plan B failed|a T cell|hepatitis B|The Jackson 5 sing A B C songs
grade A beef|Washington D.C.|I can hear a B flat.|group A
They live in block C|type B blood|an A student|The man says "see"
答案不是B|不是B|不选B|B不对|B是错的|B不正确|B错误|不可能是B|排除B|我不知道|不清楚|无法确定|没有dog的声音|不是cat|维生素C|C大调
Nicht B.|Die Antwort ist nicht B.|B ist falsch.|Weder A noch B.|Ich weiß es nicht.|Es ist keine Katze, kein cat
Pas B.|La réponse n'est pas B.|B est faux.|Ni A ni B.|Je ne sais pas.
No es B.|La respuesta no es B.|B es incorrecta.|Ni A ni C|No lo sé.
Bではありません。|Bは間違いです|わかりません|Не B.|Ответ не B.|B неверно|Ни A, ни B.|Не знаю.
""",
    REFUSAL: """
I'm sorry, but there is no audio attached.|There is no audio attached to your message.
I can't listen to audio.|I cannot listen to audio files.
I'm unable to process audio.|As an AI language model, I cannot hear sounds.
I can't hear the audio you mentioned.|No audio was provided.
I don't have the ability to listen to audio.|Please provide the audio file.
I'm sorry, I can't help with that.|I'm not able to play audio.
It seems that you have not attached any audio.|I did not receive any audio.
Unfortunately, I cannot access the recording.|Sorry, I can't assist with that.
抱歉，我无法听取音频。|我没有收到音频文件。|没有提供音频。|对不起，我不能听音频。|作为一个AI，我无法处理音频。|请提供音频文件。
Es tut mir leid, aber ich kann keine Audiodateien anhören.
Es wurde keine Audiodatei angehängt.|Ich kann keine Audiodateien verarbeiten.
Je suis désolé, mais je ne peux pas écouter l'audio.
Aucun fichier audio n'a été fourni.|Je ne peux pas écouter de fichiers audio.
Lo siento, no puedo escuchar audio.|No se ha adjuntado ningún audio.
No puedo procesar archivos de audio.|Mi dispiace, non posso ascoltare l'audio.
Nessun file audio è stato allegato.|Desculpe, não consigo ouvir o áudio.
Nenhum áudio foi anexado.|Não posso ouvir arquivos de áudio.
申し訳ありませんが、音声を聞くことができません。|音声ファイルが添付されていません。|音声が提供されていません。
죄송하지만 오디오를 들을 수 없습니다.|오디오 파일이 첨부되지 않았습니다.|Извините, я не могу прослушать аудио.|Аудиофайл не прикреплён.
Мне не удалось получить аудио.|عذراً، لا يمكنني الاستماع إلى الصوت.|لم يتم إرفاق أي ملف صوتي.
""",
}
EMOTION = {
    "happy": """
happy|Happy.|HAPPY!!|**happy**|The speaker is happy.
The speaker sounds happy.|She seems happy and cheerful.|The emotion is happy.
Emotion: happy|The label is "happy".|I think the speaker is happy
It is happy rather than sad.|happy, not sad|not sad but happy
The speaker is not sad. She is happy.|The speaker is clearly happy, without doubt.
Answer: happy|{"emotion": "happy"}|happy (not sad)
The answer is happy.|The speaker's emotion is happy.
He doesn't sound sad; he sounds happy.|happy\\nThe voice is bright.|Definitely happy
情绪是happy|答案是happy。|说话人是happy的|不是sad，而是happy|Die Emotion ist happy.|L'émotion est happy.|La emoción es happy.|感情はhappyです。
""",
    "sad": "happy? No, sad.",
    SEVERAL: """
happy or sad|happy/sad|happy and neutral|The speaker is happy or neutral.
either happy or sad|happy, sad|It could be sad or angry.|both sad and angry
happy或sad|happy和sad|happy oder sad|happy ou sad
""",
    NOTHING: """
not happy|unhappy|The speaker doesn't seem happy at all.|doesn't seem happy
far from happy|The speaker is far from happy.|never happy
I can't say whether it's happy.|I can't say whether the speaker is happy
cannot tell if the speaker is happy|not happy at all|isn't happy
The speaker is hardly happy.|not particularly happy|The speaker does not sound happy
no longer happy|anything but happy|rather than happy
happy is wrong|happy doesn't fit|It is unclear whether he is happy.
I doubt that she is happy|I don't think she is happy|not very happy
Neither happy nor sad.|neither happy nor angry|cannot be happy
不happy|不是happy|nicht happy|pas happy|no happy|overjoyed|I don't know
""",
    REFUSAL: """
I'm sorry, I can't listen to audio, so I can't say whether the speaker is happy or sad.
There is no audio.|I am unable to listen to recordings.
""",
}
GENDER = {
    "female": """
female|Female|a woman|woman|The speaker is a woman.|It is a woman's voice.
A female voice|a lady|girl|女|女性|女声|女的|说话人是女性。|这是女声。|女士
The speaker is female, not male.|not a man but a woman|She is a woman|F|female speaker
""",
    "male": """
male|Male.|a man|man|The speaker is a man.|It's a man's voice.|A male voice.
a boy|gentleman|男|男性|男声|男的|说话人是男性。|是男声|不是女的，是男的|M|male speaker
""",
    SEVERAL: "a man and a woman|male or female|man or woman|男和女|男女都有|a man or a woman|both male and female",
    NOTHING: "not a man|not female|unknown|human|a person|the manual|不是男的|woeful|I cannot tell whether it is a man",
}
DIGIT = {
    "7": "7|seven|Seven.|The digit is seven.|The number is 7.|七|数字是七|sieben|sept|siete|семь|Answer: seven|**7**|It is "
    "the digit seven|「七」|number seven",
    "0": "0|zero|Zero|零|The digit is zero.|oh zero",
    SEVERAL: "seven or eight|7 or 8|seven, eight|七或八",
    NOTHING: "not seven|17|seventy|seventeen|77|eleven|none",
}
YES_NO = {
    "yes": """
yes|Yes.|YES|Yes!|**Yes**|yes, it is|Yes, the speakers are the same.
Yes it is|Yeah|Yep.|The answer is yes.|Answer: yes|Well, yes.|So yes.|"Yes"
The answer is "Yes".|Yes, no doubt about it.|Final answer: Yes|是|是的|是的。|对
对的|正确|答案是：是|有|Ja.|Ja, das stimmt.|Oui.|Oui, c'est vrai|Sí.|Sí, es cierto.
はい|はい、そうです。|Да.|Да, верно.|True|I hear two voices.\\n\\nYes
""",
    "no": """
no|No.|NO|No!|**No**|No, it is not|No, the speakers differ.|No it isn't|Nope
Nah.|The answer is no.|Answer: no|Well, no.|So no.|"No"|Final answer: No
No, not at all.|不|不是|不是的。|不对|没有|否|答案是：不是|Nein.|Nein, das stimmt nicht.|Non.
Non, ce n'est pas vrai|No, no es cierto.|いいえ|いいえ、違います。|Нет.|Нет, неверно.
False|They differ in pitch.\\n\\nNo
""",
    SEVERAL: "yes and no|yes or no|Yes and no.|Yes. No.|Answer: yes. Answer: no.|either yes or no|是或不是",
    NOTHING: """
I have no idea.|There is no way to know.|no idea|No idea.|Maybe|yesterday|not yes
No one speaks.|no audio quality issue|I know|Perhaps|It depends|是否|none|know
I have no information about this|no matter what|unclear|不知道
""",
    REFUSAL: """
I'm sorry, but there is no audio attached.|No audio was provided.
There is no audio in your message, so I cannot answer yes or no.|没有音频。|没有提供音频文件|I can't listen to audio, no.
I'm sorry, I can't help with that. No.|对不起，我不能听音频。
""",
}
NUMBER = {
    "42": """
42|42.|The answer is 42|Answer: 42|**42**|\\\\boxed{42}|First 40, then 2: **42**
40 + 2 = **42**|We add 40 and 2 and get **42**.|40 + 2 = \\\\boxed{42}|答案是42|#### 42
He has 40 apples and buys 2, so **42 apples**.|There are 42 of them.|答案：42
答案是 **42**|40 + 2 gives **42**. |Die Antwort ist 42.|La réponse est 42.|Es sind 42.
""",
    SEVERAL: "40 and 42|42 or 43|between 40 and 42|The answer is 42 or 43.|**40** or **42**|40 + 2",
    NOTHING: "no number|none|I don't know",
}
GROUPS = {
    "option": (OPTION, {"choices": list(CHOICES)}),
    "emotion": (EMOTION, {"labels": list(EMOTIONS)}),
    "gender": (GENDER, {"labels": list(GENDERS)}),
    "digit": (DIGIT, {"labels": list(DIGITS)}),
    "yes-no": (YES_NO, {}),
    "number": (NUMBER, {}),
}
STEPS = {
    "option": "option-letter",
    "emotion": "label",
    "gender": "label",
    "digit": "label",
    "yes-no": "yes-no",
    "number": "number",
}


def forms():
    """(group, expected, text) of every form."""
    for group, (held, _) in GROUPS.items():
        for expected, lines in held.items():
            for line in lines.strip().splitlines():
                for text in line.split("|"):
                    if text:
                        yield group, expected, text.replace("\\n", "\n").replace("\\\\", "\\")
